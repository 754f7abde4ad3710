/* Threads: their time in the chosen range, if calls were followed */

// Cycles in the chosen range by process and, below it, by the name of a thread that has another ("": all its others); null if that is
// not kept.
function threadCycles() {
  const sums = rangeSums();
  if (!sums || !callers()) return null;
  const others = new Map(data.processes.map((process, at) => [process.name, sums.otherCallers[at]]));
  const cycles = new Map();
  const threads = [];
  data.flame.callers.forEach((node, at) => {
    const name = data.flame.names[node[N.name]];
    const above = threads[node[N.above] - 1];
    if (node[N.kind] === KIND.process) {
      threads[at] = [name, ""];
      // The process's node has what is not kept apart, of whichever thread.
      cycles.set(name, new Map([["", -(others.get(name) ?? 0)]]));
    } else threads[at] = node[N.kind] === KIND.thread ? [above[0], name] : above;
    const [process, thread] = threads[at];
    const own = cycles.get(process);
    own.set(thread, (own.get(thread) ?? 0) + sums.callers[at + 1]);
  });
  return cycles;
}

function threads() {
  const cycles = threadCycles();
  for (const line of document.querySelectorAll("#threads tbody tr")) {
    const [process, name, time, share] = /** @type {HTMLElement[]} */ ([...line.children]);
    for (const cell of [time, share]) cell.dataset.whole ??= cell.textContent;
    // A process has the name of its first thread, with its number if others have that name.
    const isFirst = !name.textContent || `${process.textContent}-`.startsWith(`${name.textContent}-`);
    const of = cycles?.get(process.textContent);
    const own = Math.max(0, of?.get(name.textContent) ?? (isFirst && of?.get("")) ?? 0);
    time.textContent = cycles ? number(own) : time.dataset.whole ?? "";
    share.textContent = cycles ? percent(own / (rangeSums()?.processes[0] || 1)) : share.dataset.whole ?? "";
  }
}
