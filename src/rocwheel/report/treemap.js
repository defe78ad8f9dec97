"use strict";
// The selected place as a treemap of limited depth. Deeper places are drawn when the user selects a place inside.
(() => {
  const DEPTH = 5, MOST = 250, HEIGHT = 460, LABEL = 20, LEAST_WIDTH = 44;
  const frame = make("div", { id: "treemap" });
  // For screen readers, the whole drawing is a single image.
  frame.setAttribute("role", "img");
  document.getElementById("plots").append(frame);

  // The largest places inside a place, down to the maximum depth, each with the number of its parent.
  const drawn = (top) => {
    const kept = [[top, null]];
    let level = [[top, 0]];
    for (let depth = 0; depth < DEPTH; depth += 1) {
      const below = level.flatMap(([place, at]) => place.children.map((child) => [child, at]))
        .filter(([child]) => child[state.measure] > 0)
        .sort((one, other) => other[0][state.measure] - one[0][state.measure])
        .slice(0, MOST - kept.length);
      level = below.map(([child, at]) => [child, kept.push([child, at]) - 1]);
    }
    return kept;
  };

  // The squarified layout of Bruls, Huizing, and van Wijk: each row along the shorter side takes sizes while its
  // rectangles become more like squares. The sizes are in descending order.
  const squarify = (sizes, width, height) => {
    const boxes = [];
    let left = 0, top = 0, rest = sizes.reduce((sum, size) => sum + size, 0);
    for (let at = 0; at < sizes.length;) {
      const side = Math.min(width - left, height - top), scale = (width - left) * (height - top) / rest;
      const worst = (sum, least) => Math.max(side ** 2 * sizes[at] / (scale * sum ** 2), scale * sum ** 2 / (side ** 2 * least));
      let end = at + 1, sum = sizes[at];
      while (end < sizes.length && worst(sum + sizes[end], sizes[end]) <= worst(sum, sizes[end - 1])) sum += sizes[end++];
      const depth = scale * sum / side, isColumn = width - left >= height - top;
      for (let along = 0; at < end; at += 1) {
        const length = side * sizes[at] / sum;
        boxes.push(isColumn ? [left, top + along, depth, length] : [left + along, top, length, depth]);
        along += length;
      }
      if (isColumn) left += depth; else top += depth;
      rest -= sum;
    }
    return boxes;
  };

  let places = [], inside = [];
  // Left and width are shares of the parent, so that the drawing follows the width of the window.
  const rectangle = (kind, label, size, [left, top, width, height], outer) => {
    const whole = state.place[state.measure], text = sizeText(size);
    const box = make("div", { className: `slice ${kind}`, title: `${label}\n${text}, ${(100 * size / whole).toFixed(1)}%` });
    Object.assign(box.style, { left: `${100 * left / outer}%`, width: `${100 * width / outer}%`, top: `${top}px`, height: `${height}px` });
    if (width >= LEAST_WIDTH && height >= LABEL) box.append(make("span", {}, make("b", {}, label), ` ${text}`));
    return box;
  };
  const slice = (number, bounds, outer) => {
    const [place] = places[number], [, , width, height] = bounds, room = height - LABEL - 2;
    const box = rectangle(place.kind, place.label, place[state.measure], bounds, outer);
    box.dataset.number = number;
    if (!inside[number].length || width < LEAST_WIDTH || room < LABEL) return box;
    const parts = inside[number].map((part) => [places[part][0][state.measure], part]);
    const others = parts.reduce((rest, [size]) => rest - size, place[state.measure]);
    if (others > 0) parts.push([others, null]);
    parts.sort(([one], [other]) => other - one);
    squarify(parts.map(([size]) => size), width, room).forEach(([x, y, across, down], at) => {
      const [size, part] = parts[at], inner = [x, y + LABEL, across, down];
      box.append(part === null ? rectangle("everything", "smaller ones", size, inner, width) : slice(part, inner, width));
    });
    return box;
  };
  const draw = () => {
    places = drawn(state.place);
    inside = places.map(() => []);
    places.forEach(([, parent], number) => { if (parent !== null) inside[parent].push(number); });
    frame.setAttribute("aria-label", `Treemap of ${state.place.label}, ${sizeText(state.place[state.measure])}: the table below has the same data.`);
    const width = frame.clientWidth;
    frame.replaceChildren(...(state.place[state.measure] ? [slice(0, [0, 0, width, HEIGHT], width)] : []));
  };
  frame.addEventListener("click", (event) => {
    const [found] = places[event.target.closest(".slice")?.dataset.number] ?? [];
    if (found === state.place && found.parent) goTo(found.parent);
    else if (found?.inner.size) goTo(found);
  });
  draw();
  // The table is updated first. Typed search text doesn't affect the treemap.
  let drawnPlace = state.place, drawnMeasure = state.measure, isDue = false;
  followers.push(() => {
    if (isDue || (drawnPlace === state.place && drawnMeasure === state.measure)) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false; drawnPlace = state.place; drawnMeasure = state.measure;
      draw();
    });
  });
})();
