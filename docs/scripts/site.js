/* The copy button of a console block copies the commands, without prompts and output. */

const commands = (text) => {
  const kept = [];
  let continues = false;
  for (const line of text.split("\n")) {
    if (line.startsWith("$ ")) {
      kept.push(line.slice(2));
      continues = true;
    } else if (continues && line.startsWith("> ")) {
      kept.push(line.slice(2));
    } else {
      continues = false;
    }
  }
  return kept.join("\n");
};

document.addEventListener(
  "click",
  (event) => {
    const button = event.target.closest("[data-clipboard-target]");
    const code = button && document.querySelector(button.dataset.clipboardTarget);
    if (code && code.closest(".language-console")) {
      button.setAttribute("data-clipboard-text", commands(code.textContent));
    }
  },
  true, // before the theme reads the text
);

/* Search reads a leading hyphen as "without this word": it gets the words of an option, and the field shows the option. */

const field = document.querySelector(".md-search__input");
const { get, set } = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value");

if (field) {
  Object.defineProperty(field, "value", {
    get() {
      return get.call(this).replace(/(^|\s)-+(?=\w)/g, "$1");
    },
    set,
  });
}
