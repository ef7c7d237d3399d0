"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const cosines = JSON.parse($("data").textContent);
  const size = cosines[0].length;
  const cells = [...document.querySelectorAll("#heat td[data-row]")];
  const PALE = [241, 246, 252], MIDDLE = [107, 159, 216], DEEP = [12, 52, 112];

  /** Returns the color [red, green, blue] of a number from 0 to 1. */
  function color(share) {
    const [low, high] = share < 0.5 ? [PALE, MIDDLE] : [MIDDLE, DEEP];
    const part = share < 0.5 ? share * 2 : share * 2 - 1;
    return low.map((from, i) => Math.round(from + (high[i] - from) * part));
  }

  const css = (rgb) => `rgb(${rgb.join(", ")})`;
  $("ramp").style.background = `linear-gradient(90deg, ${css(PALE)}, `
    + `${css(MIDDLE)}, ${css(DEEP)})`;

  const place = (cell) => [
    Number(cell.dataset.row), Number(cell.dataset.column),
  ];

  function draw() {
    const layer = Number($("layer").value);
    const matrix = cosines[layer];
    const others = matrix.flatMap((row, i) => row.filter((_, j) => i !== j));
    const low = Math.min(...others), high = Math.max(...others);
    $("layer-name").textContent = layer ? `${layer} of ${cosines.length - 1}`
      : "0, the embeddings";
    $("lowest").textContent = low.toFixed(2);
    $("highest").textContent = high.toFixed(2);
    for (const cell of cells) {
      const [row, column] = place(cell);
      const value = matrix[row][column];
      const share = Math.min(1, (value - low) / ((high - low) || 1));
      cell.textContent = value.toFixed(2);
      cell.dataset.value = value;
      cell.style.background = css(color(share));
      cell.style.color = share > 0.55 ? "#fff" : "#1b2330";
    }
  }

  /** Shows both sentences of a cell; null: shows nothing. */
  function look(cell) {
    for (const lit of document.querySelectorAll(".lit")) {
      lit.classList.remove("lit");
    }
    if (!cell) {
      $("pair").replaceChildren();
      return;
    }
    const [row, column] = place(cell);
    const lines = [row, column].map((number) => {
      const line = document.createElement("p");
      const text = document.querySelector(`.sentence[data-row="${number}"] bdi`);
      line.append(`${number + 1}  `, text.cloneNode(true));
      return line;
    });
    const last = document.createElement("p");
    last.textContent = `cosine ${Number(cell.dataset.value).toFixed(4)}`;
    $("pair").replaceChildren(...lines, last);
    document.querySelectorAll(`th[data-row="${row}"], th[data-column="${column}"]`)
      .forEach((head) => head.classList.add("lit"));
  }

  const ARROWS = {
    ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
  };
  const heat = $("heat");
  const cellOf = (event) => event.target.closest("td[data-row]");

  $("layer").addEventListener("input", draw);
  heat.addEventListener("pointerover", (event) => look(cellOf(event)));
  heat.addEventListener("pointerleave", () => look(null));
  heat.addEventListener("focusin", (event) => look(cellOf(event)));
  heat.addEventListener("focusout", () => look(null));
  heat.addEventListener("keydown", (event) => {
    const cell = cellOf(event), move = ARROWS[event.key];
    if (!cell || !move) return;
    event.preventDefault();
    const [row, column] = place(cell).map((number, axis) =>
      Math.max(0, Math.min(size - 1, number + move[axis])));
    const next = cells[row * size + column];
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });

  draw();
})();
