/* Threads: their time in the chosen range, if calls were followed */

// Cycles in the chosen range by process and, below it, by the name of a thread that has another; null if that is not kept.
function threadCycles() {
  const sums = rangeSums();
  if (!sums || !callers()) return null;
  const cycles = {};
  const threads = [];
  data.flame.callers.forEach((node, at) => {
    const name = data.flame.names[node[N.name]];
    const above = threads[node[N.above] - 1];
    if (node[N.kind] === KIND.process) threads[at] = [name, ""];
    else threads[at] = node[N.kind] === KIND.thread ? [above[0], name] : above;
    const [process, thread] = threads[at];
    cycles[process] ??= {};
    cycles[process][thread] = (cycles[process][thread] ?? 0) + sums.callers[at + 1];
  });
  return cycles;
}

function threads() {
  const cycles = threadCycles();
  for (const line of document.querySelectorAll("#threads tbody tr")) {
    const [process, name, time, share] = line.children;
    for (const cell of [time, share]) cell.dataset.whole ??= cell.textContent;
    const of = cycles?.[process.textContent];
    const own = of?.[name.textContent] ?? of?.[""] ?? 0;
    time.textContent = cycles ? number(own) : time.dataset.whole;
    share.textContent = cycles ? percent(own / (rangeSums().processes[0] || 1)) : share.dataset.whole;
  }
}
