/* Functions and instructions */

// Index of each function's row.
const indexOf = new Map(data.functions.map((row, at) => [row, at]));

function functionsOf() {
  const words = wordsOf(chosen.words);
  return data.functions.filter((row) => ofProcess(row[F.process]) && (chosen.module < 0 || row[F.module] === chosen.module) &&
    (!words.length || hasWords(lower(text(row[F.name])), words)));
}
const path = (row) => data.modules[row[F.module]].path;

// Margins of error of a sampled run, which are known of the whole run alone.
const hasMargins = () => !chosen.range && data.functions.some((row) => row[F.margin] !== null);
const marginOf = (row, fields) => row[chosen.process === 0 ? fields.margin_of_all : fields.margin];
const marginColumns = (fields) => hasMargins()
  ? [{ name: "± 95 %", number: true, key: (row) => marginOf(row, fields) ?? 0, width: "4.5rem", title: "The share is off by no more, by chance, for 95 % of seeds" }]
  : [];
const marginCells = (row, fields) => hasMargins()
  ? [make("td", { class: "number" }, marginOf(row, fields) === null ? "?" : percent(marginOf(row, fields)))]
  : [];

function functionTable() {
  const rows = functionsOf().filter((row) => hasTime(row, F));
  const shares = rows.map((row) => shareOf(row, F));
  const largest = shares.reduce((most, share) => Math.max(most, share), 0);
  const share = sum(shares);
  // What a function calls is known of the whole run alone.
  const followed = !chosen.range && data.functions.some((row) => row[F.total] !== null);
  const below = (row) => scale(row) * row[F.total];
  byId("function-count").textContent = `${number(rows.length)} functions, ${percent(share)} % of the cycles` +
    (chosen.process ? " of the process" : "") +
    (rangeSums() ? " in the chosen range" : "");
  table(byId("function-table"), [
    { name: "Function", key: (row) => owner(row[F.process]) + text(row[F.name]) },
    { name: "Module", key: path, width: "10rem" },
    { name: "Cycles", number: true, key: (row) => cyclesOf(row, F), sorted: true, width: "8rem" },
    { name: "Oracle, %", number: true, key: (row) => shareOf(row, F), width: "5.5rem" },
    ...marginColumns(F),
    ...(followed ? [{ name: "Below, %", number: true, key: below, width: "5.5rem", title: "With all that it calls" }] : []),
    { name: "Cycle stack", width: "6.8rem" },
    ...profilerColumns(F),
  ], (row) => {
    const name = owner(row[F.process]) + text(row[F.name]);
    const missing = row[F.missing].map(text).join("\n");
    return make("tr", {}, make("td", { title: [name, missing].join("\n") },
      missing ? make("b", { class: "mark", title: missing }, "? ") : null,
      button(owner(row[F.process]) + brief(text(row[F.name])), () => openCode(indexOf.get(row) ?? -1), { class: "link", tabindex: -1 })),
      make("td", { class: "path", title: path(row) }, make("bdi", {}, file(path(row)))),
      make("td", { class: "number" }, number(cyclesOf(row, F))),
      oracleCell(shareOf(row, F), largest),
      ...marginCells(row, F),
      followed ? make("td", { class: "number" }, percent(below(row))) : null,
      make("td", {}, miniStack(row[F.stack])),
      ...profilerCells(row, F, largest));
  }, { label: "Functions", keydown: (event, row) => { if (event.key === "Enter") openCode(indexOf.get(row) ?? -1); } }).show(rows);
}

// Rows of a block with their strings in place.
function decodeRow(row, strings) {
  for (const field of [I.label, I.function, I.source, I.text, I.library]) row[field] = row[field] === null ? "" : strings[row[field]];
  row[I.inlined] = row[I.inlined].map((name) => strings[name]);
  return row;
}
const allInstructions = () => block("instruction-data", ({ rows, strings }) => rows.map((row) => decodeRow(row, strings))) ?? [];

const labelTitle = (row) => [...row[I.inlined].map((name) => name + " (inlined)"), row[I.label]].join("\nin ");
// The line of the program, and as a tooltip that of library code which is inlined there.
const sourceTitle = (row) => [row[I.source], row[I.library] && `inlined: ${row[I.library]}`].filter(Boolean).join("\n");
const sourceCell = (row) => make("td", { class: "path", title: sourceTitle(row) }, make("bdi", {}, file(row[I.source])));

const needles = new Map();
function needle(row) {
  if (!needles.has(row)) {
    needles.set(row, lower([row[I.pc], row[I.address], row[I.label], ...row[I.inlined], row[I.source], row[I.library], row[I.text], data.processes[row[I.process]].name].join(" ")));
  }
  return needles.get(row);
}

function instructionTable() {
  const words = wordsOf(chosen.words);
  const ofModule = chosen.module < 0 ? null
    : new Set(data.functions.filter((row) => row[F.module] === chosen.module).map((row) => row[F.process] + " " + text(row[F.name])));
  const all = allInstructions().filter((row) => ofProcess(row[I.process]));
  const rows = all.filter((row) => hasTime(row, I) && (!ofModule || ofModule.has(row[I.process] + " " + row[I.function])) &&
    (!words.length || hasWords(needle(row), words)));
  const largest = all.reduce((most, row) => Math.max(most, shareOf(row, I)), 0);
  const share = rows.reduce((total, row) => total + shareOf(row, I), 0);
  byId("matches").textContent = `${number(rows.length)} of ${number(all.length)} instructions, ${percent(share)} % of the cycles` +
    (rangeSums() ? " in the chosen range" : "");
  const go = (row) => openCode(data.functions.findIndex((f) =>
    f[F.process] === row[I.process] && text(f[F.name]) === row[I.function]), row[I.pc]);
  table(byId("instruction-table"), [
    { name: "Instruction", key: (row) => owner(row[I.process]) + row[I.function] + row[I.pc].padStart(16, "0") },
    { name: "Disassembly", key: (row) => row[I.text], width: "15rem" },
    { name: "Source", key: (row) => file(row[I.source]), width: "9rem" },
    { name: "Cycles", number: true, key: (row) => cyclesOf(row, I), sorted: true, width: "8rem" },
    { name: "Oracle, %", number: true, key: (row) => shareOf(row, I), width: "5.5rem" },
    ...marginColumns(I),
    { name: "Cycle stack", width: "6.8rem" },
    ...profilerColumns(I),
  ], (row) => make("tr", {},
    make("td", { title: "0x" + row[I.pc] + "\n" + labelTitle(row) }, mark(row),
      button(owner(row[I.process]) + brief(row[I.label]), () => go(row), { class: "link", tabindex: -1 })),
    make("td", { class: "code", title: row[I.text] }, row[I.text].replace("\t", " ")),
    sourceCell(row),
    make("td", { class: "number" }, number(cyclesOf(row, I))),
    oracleCell(shareOf(row, I), largest),
    ...marginCells(row, I),
    make("td", {}, miniStack(row[I.stack])),
    ...profilerCells(row, I, largest)),
  { label: "Instructions", keydown: (event, row) => { if (event.key === "Enter") go(row); } }).show(rows);
}
