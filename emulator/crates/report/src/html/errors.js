/* Errors of profilers, and where they disagree with the Oracle */

const LEVELS = ["Instruction", "Basic block", "Function"];

// Least error that the axis of a chart reaches to.
const LEAST_AXIS = 0.02;
function errorChart(level, process) {
  const shown = primary.filter((column) => process.errors[column.index]);
  const [left, right, height, width] = [92, 52, 24, 420];
  const error = (column) => process.errors[column.index][level];
  const marks = shown.flatMap((column) =>
    [error(column)[0], error(column)[1], column.published[level] ? column.published[level][0] : 0]);
  const limit = Math.max(LEAST_AXIS, ...marks);
  const step = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25].find((size) => limit / size <= 4.5) || 0.25;
  const x = (value) => left + (width - left - right) * value / limit;
  const bottom = shown.length * height + 4;
  const svg = make("svg", {
    viewBox: `0 0 ${width} ${bottom + 18}`, role: "img",
    "aria-label": `${LEVELS[level]} errors: ` +
      shown.map((column) => `${column.label} ${percent(error(column)[0])} %`).join(", "),
  });
  for (let value = 0; value <= limit; value += step) {
    svg.append(make("line", { class: "grid", x1: x(value), x2: x(value), y1: 0, y2: bottom }),
      make("text", { class: "axis", x: x(value), y: bottom + 14, "text-anchor": "middle" },
        +(100 * value).toFixed(1) + " %"));
  }
  shown.forEach((column, row) => {
    const [measured, sampling, margin] = error(column);
    const published = column.published[level];
    const middle = row * height + height / 2 + 1;
    const group = make("g", {}, make("title", {},
      `${column.label}: ${(100 * measured).toFixed(2)} % at the ${LEVELS[level].toLowerCase()} level, ` +
      `${(100 * sampling).toFixed(2)} % from sampling alone` +
      (margin === null ? "" : `, ± ${(100 * margin).toFixed(2)} % by chance of the units`) +
      (published ? `, published mean ${published[1]} %` : "")));
    const tip = column.label.startsWith("tip") || column.profiler === null ? " tip" : "";
    group.append(
      make("text", { x: left - 8, y: middle + 4.5, "text-anchor": "end" }, column.label),
      make("rect", { class: "bar" + tip, x: left, y: middle - 7, rx: 2, height: 14,
        width: Math.max(1, x(measured) - left) }),
      make("line", { class: "sampling", x1: x(sampling), x2: x(sampling), y1: middle - 10, y2: middle + 10 }));
    if (published) {
      const at = x(published[0]);
      group.append(make("path", { class: "published",
        d: `M${at} ${middle - 5}L${at + 5} ${middle}L${at} ${middle + 5}L${at - 5} ${middle}Z` }));
    }
    const end = Math.max(x(measured), x(sampling) + 2, published ? x(published[0]) + 5 : 0);
    group.append(make("text", { class: "value", x: end + 7, y: middle + 4.5 }, percent(measured)));
    svg.append(group);
  });
  return make("div", { class: "chart" }, make("h3", {}, LEVELS[level], make("span", { class: "muted" }, "error, %")), svg);
}
function errors() {
  const process = data.processes[chosen.process];
  const sampled = process.errors.some((levels) => levels && levels.some((level) => level[2] !== null));
  byId("charts").replaceChildren(...LEVELS.map((_, level) => errorChart(level, process)));
  const head = ["Sampler", "every, cycles", "samples"].map((name, index) =>
    make("th", { rowspan: 2, scope: "col", class: index ? "number" : null }, name));
  const levels = LEVELS.map((name) => make("th", { colspan: sampled ? 4 : 3, scope: "colgroup", class: "first" }, name + ", %"));
  const sub = LEVELS.flatMap(() => ["error", "sampling", ...(sampled ? ["± 95 %"] : []), "published"].map((name, index) =>
    make("th", { class: index ? "number" : "number first", scope: "col" }, name)));
  const body = data.columns.flatMap((column, index) => {
    const error = process.errors[index];
    if (!error) return [];
    const every = column.period === null ? "in the guest" : (column.random ? "~" : "") + number(column.period);
    return [make("tr", {}, make("th", { scope: "row" }, column.name),
      make("td", { class: "number" }, every),
      make("td", { class: "number" }, number(process.samples[index])),
      ...LEVELS.flatMap((_, level) => [
        make("td", { class: "number first" }, percent(error[level][0])),
        make("td", { class: "number zero" }, percent(error[level][1])),
        sampled ? make("td", { class: "number zero" }, error[level][2] === null ? "?" : percent(error[level][2])) : null,
        make("td", { class: "number zero" }, column.published[level] ? column.published[level][1] : "–"),
      ]))];
  });
  byId("error-table").replaceChildren(make("table", {},
    make("thead", {}, make("tr", {}, ...head, ...levels), make("tr", { class: "second" }, ...sub)),
    make("tbody", {}, ...body)));
}

function errorLegend() {
  const entry = (name, ...shapes) =>
    make("span", {}, make("svg", { viewBox: "0 0 18 12", "aria-hidden": "true" }, ...shapes), name);
  byId("error-legend").append(
    entry("measured here", make("rect", { class: "bar", x: 0, y: 1, width: 18, height: 10, rx: 2 })),
    entry("left by sampling alone: random samples of the truth, as many",
      make("line", { class: "sampling", x1: 9, x2: 9, y1: 0, y2: 12 })),
    entry("published mean, 27 programs at 4 kHz (TIP, MICRO'21)",
      make("path", { class: "published", d: "M9 1L14 6L9 11L4 6Z" })));
}

// The sentences that name an instruction, by process and address.
const sentencesOf = new Map();
for (const d of data.disagreements) {
  for (const inst of [d.named, d.truth]) {
    const key = d.process + " " + inst[0];
    sentencesOf.set(key, [...(sentencesOf.get(key) ?? []), text(d.words).replaceAll("`", "")]);
  }
}
const mark = (row) => {
  const found = sentencesOf.get(row[I.process] + " " + row[I.pc]);
  return found ? make("b", { class: "mark", title: found.join("\n") }, "! ") : null;
};

function sentences() {
  const own = data.disagreements.filter((d) => ofProcess(d.process));
  byId("words").hidden = data.disagreements.length === 0;
  const names = [...new Set(own.map((d) => d.column))];
  const accused = byId("accused").value;
  byId("accused").replaceChildren(make("option", { value: "" }, "all"),
    ...names.map((column) => make("option", { value: column }, data.columns[column].label)));
  byId("accused").value = names.includes(Number(accused)) && accused !== "" ? accused : "";
  const shown = own.filter((d) => byId("accused").value === "" || d.column === Number(byId("accused").value));
  byId("sentences").replaceChildren(...shown.slice(0, 60).map((d) => {
    // Every second part was between backquotes.
    const parts = text(d.words).split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part));
    const button = make("button", { type: "button", title: "Show in the disassembly" }, owner(d.process), ...parts);
    button.addEventListener("click", () => {
      const label = text(d.named[1]).replace(/\+0x[0-9a-f]+$/, "");
      openCode(data.functions.findIndex((f) => f[F.process] === d.process && text(f[F.name]) === label), d.named[0]);
    });
    return make("li", {}, button);
  }));
  if (!shown.length) byId("sentences").append(make("li", { class: "muted" }, "None worth a sentence for this choice."));
}
