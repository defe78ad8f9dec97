"use strict";
// The selected place as a treemap of limited depth. Deeper places are drawn when the user selects a place inside.
(() => {
  const DEPTH = 5, MOST = 250;
  const box = make("div", { className: "plot" });
  const frame = make("div", { id: "treemap" }, box);
  // For screen readers, the whole drawing is a single image.
  frame.setAttribute("role", "img");
  box.setAttribute("aria-hidden", "true");
  document.getElementById("plots").append(frame);
  // Plotly interprets markup in labels.
  const plain = (text) => text.replace(/[&<>]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign]);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const SHADES = {
    light: { package: "#cfe0f2", component: "#d9ead3", folder: "#e9edf2", file: "#fbe7c6", target: "#f4cccc", everything: "#ffffff" },
    dark: { package: "#274766", component: "#2f4f2f", folder: "#2b3542", file: "#5c4a1f", target: "#663333", everything: "#10161e" },
  };
  const FEW = "smaller ones";

  // The largest places inside a place, down to the maximum depth. The remainder of each place becomes one more rectangle.
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

  let places = [];
  const draw = () => {
    const measure = state.measure, shades = SHADES[dark.matches ? "dark" : "light"];
    places = drawn(state.place);
    const trace = { type: "treemap", branchvalues: "total", ids: [], labels: [], parents: [], values: [], customdata: [], marker: { colors: [] } };
    const shown = places.map(() => 0);
    const add = (id, parent, label, value, color) => {
      trace.ids.push(String(id)); trace.parents.push(parent === null ? "" : String(parent)); trace.labels.push(plain(label));
      trace.values.push(value); trace.customdata.push(sizeText(value)); trace.marker.colors.push(color);
    };
    places.forEach(([place, parent], id) => {
      if (parent !== null) shown[parent] += place[measure];
      add(id, parent, place.label, place[measure], shades[place.kind]);
    });
    places.forEach(([place], id) => {
      if (shown[id] && shown[id] < place[measure]) add(`rest ${id}`, id, FEW, place[measure] - shown[id], shades.everything);
    });
    const ink = getComputedStyle(document.body).color, paper = getComputedStyle(document.body).backgroundColor;
    Object.assign(trace, {
      texttemplate: "%{label}<br>%{customdata}", hovertemplate: "%{label}<br>%{customdata}<br>%{percentRoot}<extra></extra>",
      pathbar: { visible: false }, tiling: { packing: "squarify", pad: 1 }, textfont: { color: ink }, root: { color: paper },
      marker: { colors: trace.marker.colors, line: { width: 1, color: paper } },
    });
    frame.setAttribute("aria-label", `Treemap of ${state.place.label}, ${sizeText(state.place[measure])}: the table below has the same data.`);
    const layout = { margin: { t: 0, r: 0, b: 0, l: 0 }, paper_bgcolor: paper, font: { color: ink, family: "inherit" }, uirevision: "same", height: 460, uniformtext: { minsize: 9, mode: "hide" } };
    return Plotly.react(box, [trace], layout, { displayModeBar: false, responsive: true });
  };
  draw().then(() => {
    // The element with which Plotly measures labels.
    document.getElementById("js-plotly-tester")?.setAttribute("aria-hidden", "true");
    // Plotly's own zoom wouldn't update the table.
    box.on("plotly_treemapclick", (event) => {
      const [found] = places[Number(event.points[0].id)] ?? [];
      if (found === state.place && found.parent) goTo(found.parent);
      else if (found?.inner.size) goTo(found);
      return false;
    });
  });
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
  dark.addEventListener("change", draw);
})();
