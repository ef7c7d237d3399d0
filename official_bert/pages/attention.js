"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const { tokens, segments, numLayers, numHeads } = JSON.parse(
    $("data").textContent);
  const size = tokens.length;
  const ROW = 24; // Pixels: the height of a token in style.css.
  const FAINTEST = 1 / 255; // The faintest line that a screen can show.
  const THUMB = Math.max(28, Math.min(64, Math.floor(408 / numHeads)));
  const COLORS = [[29, 95, 191], [184, 71, 15]]; // For A and B, as in style.css.
  const weights = decode($("weights").textContent.trim());
  // `hovered` and `pinned` are buttons of tokens, or null.
  const state = {
    layer: 0, head: 0, filter: "all", hovered: null, pinned: null,
  };

  /** Returns the little-endian uint16 numbers in base64 text. */
  function decode(text) {
    const characters = atob(text);
    const bytes = new Uint8Array(characters.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
    return new Uint16Array(bytes.buffer);
  }

  function weight(layer, head, from, to) {
    return weights[((layer * numHeads + head) * size + from) * size + to]
      / 65535;
  }

  /** Returns the color of lines from a token. */
  const shade = (from, opacity) =>
    `rgba(${COLORS[segments[from]].join(", ")}, ${opacity.toFixed(3)})`;

  /** Whether the filter shows the line from one token to another. */
  function isShown(from, to) {
    return state.filter === "all"
      || state.filter === "AB"[segments[from]] + "AB"[segments[to]];
  }

  const buttons = [...document.querySelectorAll(".token")];
  const indexOf = (button) => Number(button.dataset.index);

  /** The button of the only token whose lines are shown, or null. */
  const active = () => state.hovered || state.pinned;

  function drawLines() {
    const svg = $("lines");
    const width = svg.clientWidth || 300;
    const middle = width / 2;
    svg.setAttribute("height", size * ROW);
    svg.setAttribute("viewBox", `0 0 ${width} ${size * ROW}`);
    const activeToken = active();
    const column = activeToken?.dataset.column;
    const lines = [];
    for (let from = 0; from < size; from++) {
      if (column === "from" && indexOf(activeToken) !== from) continue;
      for (let to = 0; to < size; to++) {
        if (column === "to" && indexOf(activeToken) !== to) continue;
        const value = weight(state.layer, state.head, from, to);
        if (value < FAINTEST || !isShown(from, to)) continue;
        const start = (from + 0.5) * ROW, end = (to + 0.5) * ROW;
        const line = document.createElementNS(svg.namespaceURI, "path");
        line.setAttribute("d", `M0 ${start}C${middle} ${start} ${middle} ${end}`
          + ` ${width} ${end}`);
        line.setAttribute("class", "ab"[segments[from]]);
        line.setAttribute("stroke-opacity", value.toFixed(4));
        line.dataset.from = from;
        line.dataset.to = to;
        line.dataset.weight = value;
        lines.push(line);
      }
    }
    svg.replaceChildren(...lines);
  }

  /** The attention between the active token and another, or null. */
  function share(column, index) {
    const activeToken = active();
    if (!activeToken || activeToken.dataset.column === column) return null;
    const [from, to] = column === "to" ? [indexOf(activeToken), index]
      : [index, indexOf(activeToken)];
    return isShown(from, to) ? weight(state.layer, state.head, from, to) : null;
  }

  function markTokens() {
    const activeToken = active();
    for (const button of buttons) {
      const column = button.dataset.column, index = indexOf(button);
      const value = share(column, index);
      button.classList.toggle("active", button === activeToken);
      const isOff = activeToken ? value === null && button !== activeToken
        : !hasLines(column, index);
      button.classList.toggle("off", isOff);
      button.setAttribute("aria-pressed", button === state.pinned);
      button.style.background = value === null ? ""
        : shade(column === "to" ? indexOf(activeToken) : index, value * 0.35);
      button.querySelector(".number").textContent = value === null ? ""
        : value.toFixed(3);
    }
  }

  /** Whether the filter shows any line of a token. */
  function hasLines(column, index) {
    if (state.filter === "all") return true;
    const own = column === "from" ? state.filter[0] : state.filter[1];
    return "AB"[segments[index]] === own;
  }

  function speak() {
    const activeToken = active();
    let text = `Layer ${state.layer + 1}, head ${state.head + 1}`;
    if (activeToken) {
      const isFrom = activeToken.dataset.column === "from";
      const other = isFrom ? "to" : "from";
      const best = tokens.map((token, index) => [share(other, index), token])
        .filter(([value]) => value >= 0.005) // False for null.
        .sort((x, y) => y[0] - x[0]).slice(0, 5)
        .map(([value, token]) => `${token} ${value.toFixed(2)}`);
      text += `: “${tokens[indexOf(activeToken)]}” `
        + (isFrom ? "attends to " : "is attended to by ")
        + (best.join(", ") || "nothing shown");
    }
    $("spoken").textContent = text;
  }

  function drawPicture() {
    drawLines();
    markTokens();
    speak();
  }

  /** Draws a thumbnail of a head: its stronger lines. */
  function drawThumb(button) {
    const layer = Number(button.dataset.layer);
    const head = Number(button.dataset.head);
    const canvas = button.firstElementChild;
    const scale = window.devicePixelRatio || 1;
    canvas.width = canvas.height = THUMB * scale;
    canvas.style.width = canvas.style.height = `${THUMB}px`;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    const step = (THUMB - 6) / size;
    for (let from = 0; from < size; from++) {
      context.strokeStyle = shade(from, 1);
      for (let to = 0; to < size; to++) {
        const value = weight(layer, head, from, to);
        if (value < 0.05 || !isShown(from, to)) continue;
        context.globalAlpha = value;
        context.beginPath();
        context.moveTo(3, 3 + (from + 0.5) * step);
        context.lineTo(THUMB - 3, 3 + (to + 0.5) * step);
        context.stroke();
      }
    }
  }

  const thumbs = [...document.querySelectorAll(".thumb")];

  function choose(layer, head) {
    state.layer = Math.max(0, Math.min(numLayers - 1, layer));
    state.head = Math.max(0, Math.min(numHeads - 1, head));
    $("layer").value = state.layer;
    $("head").value = state.head;
    thumbs.forEach((button, number) => {
      const isChosen = number === state.layer * numHeads + state.head;
      button.setAttribute("aria-pressed", isChosen);
      button.tabIndex = isChosen ? 0 : -1;
    });
    drawPicture();
  }

  const ARROWS = {
    ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
  };

  $("heads").addEventListener("click", (event) => {
    const button = event.target.closest(".thumb");
    if (button) choose(Number(button.dataset.layer), Number(button.dataset.head));
  });
  $("heads").addEventListener("keydown", (event) => {
    const move = ARROWS[event.key];
    if (!move) return;
    event.preventDefault();
    choose(state.layer + move[0], state.head + move[1]);
    thumbs[state.layer * numHeads + state.head].focus();
  });
  for (const id of ["layer", "head"]) {
    $(id).addEventListener("change", () =>
      choose(Number($("layer").value), Number($("head").value)));
  }
  if ($("filter")) {
    $("filter").addEventListener("change", (event) => {
      state.filter = event.target.value;
      thumbs.forEach(drawThumb);
      drawPicture();
    });
  }

  const picture = $("picture");

  /** The token at which an event happened, or null. */
  const tokenAt = (event) => event.target.closest(".token");

  function look(button) {
    state.hovered = button;
    drawPicture();
  }

  picture.addEventListener("pointerover", (event) => look(tokenAt(event)));
  picture.addEventListener("pointerleave", () => look(null));
  picture.addEventListener("focusin", (event) => {
    // A click focuses the token too.
    if (event.target.matches(":focus-visible")) look(tokenAt(event));
  });
  picture.addEventListener("focusout", () => look(null));
  picture.addEventListener("click", (event) => {
    const button = tokenAt(event);
    if (!button) return;
    state.pinned = button === state.pinned ? null : button;
    state.hovered = null;
    drawPicture();
  });
  picture.addEventListener("keydown", (event) => {
    const button = tokenAt(event), move = ARROWS[event.key];
    if (!button || !move) return;
    event.preventDefault();
    let column = button.dataset.column;
    if (move[1]) column = move[1] < 0 ? "from" : "to";
    const index = Math.max(0, Math.min(size - 1, indexOf(button) + move[0]));
    const next = picture.querySelector(
      `[data-column="${column}"][data-index="${index}"]`);
    for (const other of buttons) {
      if (other.dataset.column === column) {
        other.tabIndex = other === next ? 0 : -1;
      }
    }
    next.focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    state.pinned = null;
    look(null);
  });
  window.addEventListener("resize", drawLines);

  thumbs.forEach(drawThumb);
  choose(0, 0);
})();
