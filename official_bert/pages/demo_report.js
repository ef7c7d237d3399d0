"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const { functions, results } = JSON.parse($("data").textContent);
  const MAX_MATCHES = 12;

  /** Returns a button that shows a function and, after a click, similar ones. */
  function button(index, start) {
    const found = document.createElement("button"),
      signature = document.createElement("span");
    found.type = "button";
    signature.className = "note";
    signature.textContent = functions[index][0];
    found.append(`${start}${functions[index][1]} `, signature);
    found.addEventListener("click", () => showSimilar(index));
    return found;
  }

  function showSimilar(index) {
    const title = document.createElement("h3");
    title.textContent = `Similar to “${functions[index][1]}”`;
    const others = results[index].filter(([other]) => other !== index);
    $("similar").replaceChildren(title, ...others.map(([other, cosine]) =>
      button(other, `${cosine.toFixed(2)} `)));
  }

  function showMatches() {
    const words = $("words").value.toLowerCase().split(/\s+/);
    const matches = [...functions.keys()].filter((index) => {
      const text = functions[index].join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const shown = matches.slice(0, MAX_MATCHES);
    $("count").textContent = `${shown.length} of ${matches.length} are shown.`;
    $("matches").replaceChildren(...shown.map((index) => button(index, "")));
    if (shown.length) showSimilar(shown[0]);
  }

  $("words").addEventListener("input", showMatches);
  showMatches();
})();
