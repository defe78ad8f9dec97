"use strict";
// A tree of packages, components, folders, files, and targets with their sizes. The page shows one place in the tree.
const report = JSON.parse(document.getElementById("facts").textContent);

const units = ["bytes", "kB", "MB", "GB", "TB", "PB"];
const sizeText = (size) => {
  let unit = 0, amount = Math.abs(size);
  while (amount >= 1000 && unit + 1 < units.length) { amount /= 1000; unit += 1; }
  return `${size < 0 ? "-" : ""}${unit ? amount.toFixed(1) : amount} ${units[unit]}`;
};
const make = (tag, settings = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(settings)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && !name.startsWith("aria-")) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
};

const NO_GPU = "no GPU code";
const PART_OF = { "": NO_GPU };
const targetName = (place) => PART_OF[report.targets[place]] ?? report.targets[place];

class Place {
  constructor(name, kind, parent) {
    Object.assign(this, { name, kind, parent, size: 0, packed: 0, files: 0, inner: new Map(), note: "" });
  }
  child(name, kind) {
    const key = `${kind}\n${name}`;
    let found = this.inner.get(key);
    if (!found) this.inner.set(key, found = new Place(name, kind, this));
    return found;
  }
  add(size, packed) { this.size += size; this.packed += packed; }
  get trail() { return this.parent ? [...this.parent.trail, this] : [this]; }
  get children() { return [...this.inner.values()].map((child) => child.folded); }
  // A folder that contains only one folder is merged with that folder.
  get folded() {
    let last = this;
    while (last.kind === "folder" && last.inner.size === 1) {
      const [only] = last.inner.values();
      if (only.kind !== "folder") break;
      last = only;
    }
    return last;
  }
  get label() {
    let text = this.name;
    for (let up = this.parent; this.kind === "folder" && up?.kind === "folder" && up.inner.size === 1; up = up.parent) text = `${up.name}/${text}`;
    return this.kind === "folder" ? `${text}/` : text;
  }
}

const ORDERS = {
  package: ["package", "component", "path", "target"],
  component: ["component", "package", "path", "target"],
  target: ["target", "package", "component", "path"],
};

const buildTree = (order) => {
  const root = new Place("Everything", "everything", null);
  const steps = ORDERS[order];
  for (const [number, [label, kind, , rest, problem]] of report.packages.entries()) {
    if (!rest && !problem) continue;
    const name = kind === "wheel" ? "headers of the wheel" : kind === "sdist" ? "packed as a whole" : "unreadable";
    const target = order === "target" ? [[NO_GPU, "target"]] : [];
    const chain = order === "component" ? [[name, "component"], [label, "package"]] : [...target, [label, "package"], [name, "file"]];
    const end = walk(root, chain, 0, rest, null);
    end.note = problem;
    end.number = number;
  }
  for (const [number, file] of report.files.entries()) {
    const [pack, component, path, size, packed, parts, note] = file;
    const names = path.split("/");
    const filled = parts || [[-1, size, packed]];
    const seen = new Set();
    for (const [target, partSize, partPacked] of filled) {
      const chain = [];
      for (const step of steps) {
        if (step === "package") chain.push([report.packages[pack][0], "package"]);
        if (step === "component") chain.push([report.components[component], "component"]);
        if (step === "target" && (target >= 0 || order === "target")) chain.push([target < 0 ? NO_GPU : targetName(target), "target"]);
        if (step === "path") names.forEach((name, at) => chain.push([name, at + 1 < names.length ? "folder" : "file"]));
      }
      const end = walk(root, chain, partSize, partPacked, seen);
      if (order === "target" || !parts) { end.note = note || ""; end.number = number; }
    }
  }
  return root;
};
// Adds the sizes to each place on a path. `seen` contains the places that already counted the file.
const walk = (root, chain, size, packed, seen) => {
  let at = root;
  const come = () => {
    at.add(size, packed);
    if (seen && !seen.has(at)) { seen.add(at); at.files += 1; }
  };
  come();
  for (const [name, kind] of chain) { at = at.child(name, kind); come(); }
  return at;
};

const state = { order: "package", measure: "size", column: "size", falling: true, page: 0, wanted: "", place: null };
const trees = {};
const treeOf = (order) => trees[order] ??= buildTree(order);
const PAGE = 100;
const followers = [];  // functions that update other views of the place

const explorer = document.getElementById("explorer");
const said = document.getElementById("said");
const trail = make("ol", { className: "trail" });
const head = make("tr");
const rows = make("tbody");
const pages = make("p", { className: "pages" });
const find = make("input", { type: "search", id: "find", autocomplete: "off", oninput: () => { state.wanted = find.value; state.page = 0; show(); } });

const choice = (id, label, options, act) => {
  const field = make("select", { id, onchange: () => act(field.value) });
  for (const [value, text] of options) field.append(make("option", { value }, text));
  return make("label", {}, label, field);
};
const goTo = (place) => {
  state.place = place; state.page = 0; state.wanted = find.value = "";
  show();
  said.textContent = `${place.label}: ${sizeText(place[state.measure])}`;
};

const matching = (place, words) => {
  const found = [];
  const visit = (at) => {
    if (at.kind === "file") {
      const text = at.trail.map((one) => one.name).join("/").toLowerCase();
      if (words.every((word) => text.includes(word))) found.push(at);
    }
    else for (const child of at.inner.values()) visit(child);
  };
  visit(place);
  return found;
};

const COLUMNS = [["name", "Name"], ["kind", "What"], ["files", "Files"], ["size", "Size"], ["packed", "Packed"]];
const shownColumns = () => COLUMNS.filter(([key]) => key !== "packed" || report.packed);
const valueOf = (place, column) => column === "name" ? place.label : place[column];

const listed = () => {
  const words = state.wanted.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length ? matching(state.place, words) : state.place.children;
  const way = state.falling ? -1 : 1;
  return found.sort((one, other) => {
    const [a, b] = [valueOf(one, state.column), valueOf(other, state.column)];
    return way * (typeof a === "string" ? a.localeCompare(b) : a - b) || (one.label < other.label ? -1 : 1);
  });
};

const showHead = () => {
  head.replaceChildren(...shownColumns().map(([key, text]) => {
    const sorted = state.column === key;
    const button = make("button", {
      type: "button",
      onclick: () => {
        state.falling = sorted ? !state.falling : !["name", "kind"].includes(key);
        state.column = key; state.page = 0;
        show();
        head.querySelector(`[data-column=${key}] button`).focus();
      },
    }, `${text}${sorted ? state.falling ? " ▼" : " ▲" : ""}`);
    button.setAttribute("aria-label", `Sort by ${text.toLowerCase()}`);
    const cell = make("th", { scope: "col", className: key === "kind" ? "kind" : key === "name" ? "" : "size", "data-column": key }, button);
    if (sorted) cell.setAttribute("aria-sort", state.falling ? "descending" : "ascending");
    return cell;
  }), make("th", { scope: "col", className: "share" }, "Share"));
};

const rowOf = (place) => {
  const name = state.wanted ? place.trail.slice(state.place.trail.length).map((one) => one.name).join("/") : place.label;
  const first = place.inner.size ? make("button", { type: "button", className: "plain", onclick: () => goTo(place) }, name) : name;
  const cell = make("th", { scope: "row" }, first);
  if (place.note) cell.append(make("div", { className: place.note.startsWith("unreadable") ? "problems" : "soft" }, place.note));
  const whole = state.place[state.measure], part = place[state.measure];
  const meter = make("meter", { min: 0, max: 1, value: whole ? part / whole : 0 });
  meter.setAttribute("aria-label", `${whole ? (100 * part / whole).toFixed(1) : 0} %`);
  const cells = shownColumns().slice(1).map(([key]) =>
    make("td", { className: key === "kind" ? "kind" : "size" }, key === "kind" ? place.kind : key === "files" ? String(place.files) : sizeText(place[key])));
  return make("tr", {}, cell, ...cells, make("td", { className: "share" }, meter));
};

const showPages = (count) => {
  const last = Math.max(0, Math.ceil(count / PAGE) - 1);
  const turn = (by, text) => make("button", { type: "button", disabled: state.page + by < 0 || state.page + by > last, onclick: () => { state.page += by; show(); } }, text);
  const from = state.page * PAGE;
  const text = ` ${count ? from + 1 : 0} to ${Math.min(count, from + PAGE)} of ${count} `;
  pages.replaceChildren(...(last ? [turn(-1, "Before"), text, turn(1, "After")] : [text]));
};

const show = () => {
  trail.replaceChildren(...state.place.trail.filter((one) => one.folded === one || one === state.place).map((one) =>
    make("li", {}, one === state.place ? make("b", {}, one.label) : make("button", { type: "button", className: "plain", onclick: () => goTo(one) }, one.label))));
  const found = listed();
  showHead();
  rows.replaceChildren(...found.slice(state.page * PAGE, (state.page + 1) * PAGE).map(rowOf));
  showPages(found.length);
  if (state.wanted) said.textContent = `${found.length} found.`;
  for (const follow of followers) follow();
};

const start = () => {
  const controls = [choice("first", "Group by", [["package", "package"], ["component", "component"], ["target", "GPU"]], (order) => {
    state.order = order;
    goTo(treeOf(order));
  })];
  if (report.packed) controls.push(choice("measure", "Sizes", [["size", "unpacked"], ["packed", "packed"]], (measure) => {
    state.measure = measure;
    if (["size", "packed"].includes(state.column)) state.column = measure;
    show();
  }));
  controls.push(make("label", {}, "Find files below", find));
  const table = make("table", {}, make("thead", {}, head), rows);
  const region = make("div", { className: "wide contents", tabIndex: 0 }, table);
  region.setAttribute("role", "region");
  region.setAttribute("aria-label", "Contents");
  const nav = make("nav", {}, trail);
  nav.setAttribute("aria-label", "Place in the packages");
  explorer.append(make("div", { className: "controls" }, ...controls), nav, make("div", { id: "plots" }), region, pages);
  explorer.hidden = false;
  state.place = treeOf(state.order);
  show();
};
start();
