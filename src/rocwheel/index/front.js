"use strict";
(() => {
  // Where this page is, installers find the index. What a shell would take for more than text is written as %XX.
  const plain = (url) => url.replace(/[^\w.~:\/@%+=,\-\[\]]/g, (sign) => encodeURIComponent(sign).replace(/['()!*]/g,
    (rest) => "%" + rest.charCodeAt(0).toString(16).toUpperCase()));
  const url = plain(new URL(".", location.href.split(/[?#]/)[0]).href);
  for (const place of document.querySelectorAll(".url")) place.textContent = url;
  for (const note of document.querySelectorAll(".without-script")) note.hidden = true;

  const said = document.getElementById("said");
  const copy = async (text) => {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    if (!copied) throw new Error("not copied");
  };
  for (const line of document.querySelectorAll(".line")) {
    const button = document.createElement("button");
    const text = () => line.querySelector("pre").textContent;
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy: ${text()}`);
    button.addEventListener("click", () => copy(text()).then(
      () => { button.textContent = "Copied"; said.textContent = "Copied."; },
      () => { said.textContent = "Your browser blocked copying. Select the line instead."; },
    ));
    line.append(button);
  }

  const find = document.getElementById("find");
  if (find) {
    const squeezed = (text) => text.toLowerCase().replace(/[\s_-]+/g, "");
    const products = [...document.querySelectorAll(".products li")];
    const cards = [...document.querySelectorAll(".gpu")];
    const groups = [...document.querySelectorAll(".choices .products")];
    const show = () => {
      const wanted = squeezed(find.value);
      const matching = products.filter((item) => squeezed(item.textContent).includes(wanted));
      const targets = new Set(matching.map((item) => item.querySelector("a")?.hash.slice(1)));
      for (const item of products) item.hidden = !matching.includes(item);
      for (const card of cards) card.hidden = wanted !== "" && !targets.has(card.id);
      for (const group of groups) {
        const isEmpty = [...group.children].every((item) => item.hidden);
        group.hidden = group.previousElementSibling.hidden = isEmpty;
      }
      const absent = document.getElementById("absent");
      if (absent) absent.hidden = [...absent.querySelectorAll("li")].every((item) => item.hidden);
      if (absent) absent.open = wanted !== "" && matching.some((item) => absent.contains(item));
      said.textContent = wanted === "" ? "" : `${matching.length} found.`;
    };
    find.closest(".find").hidden = false;
    find.addEventListener("input", () => {
      // A GPU that was chosen by its address would keep the others hidden.
      if (location.hash) location.hash = "#gpus";
      show();
    });
    show();
  }

  const findPackage = document.getElementById("find-package");
  const rows = [...document.querySelectorAll("tbody tr")].map((row) => [row, row.textContent.toLowerCase().replace(/[\s_.-]+/g, "")]);
  findPackage.closest(".find").hidden = false;
  findPackage.addEventListener("input", () => {
    const wanted = findPackage.value.toLowerCase().replace(/[\s_.-]+/g, "");
    let found = 0;
    for (const [row, text] of rows) found += (row.hidden = !text.includes(wanted)) ? 0 : 1;
    said.textContent = wanted === "" ? "" : `${found} found.`;
  });
})();
