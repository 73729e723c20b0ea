// The clock of this program, which a step can put forward: what a plugin does by a timer is seen without waiting for it.

const { setTimeout: startTimeout, setInterval: startInterval, clearTimeout: stopTimeout, clearInterval: stopInterval } = globalThis;
const { now: tell } = Date;
const LONGEST_MS = 10_000;
const timers = new Map();
let ahead = 0;

Date.now = () => tell() + ahead;

function counted(start, repeats) {
  const make = (handler, ms = 0, ...args) => {
    if (typeof handler !== "function") return start(handler, ms, ...args);
    const timer = { run: () => handler(...args), due: Date.now() + ms, every: repeats ? Math.max(ms, 1) : undefined };
    const handle = start(() => {
      if (repeats) timer.due = Date.now() + timer.every;
      else timers.delete(handle);
      return timer.run();
    }, ms);
    timers.set(handle, timer);
    return handle;
  };
  // node's own promise of a timeout is made by a member of the function.
  for (const symbol of Object.getOwnPropertySymbols(start)) make[symbol] = start[symbol];
  return make;
}

const uncounted = (stop) => (handle) => {
  timers.delete(handle);
  stop(handle);
};

globalThis.setTimeout = counted(startTimeout, false);
globalThis.setInterval = counted(startInterval, true);
globalThis.clearTimeout = uncounted(stopTimeout);
globalThis.clearInterval = uncounted(stopInterval);

/** Call `done` in so many milliseconds of real time, whatever becomes of the clock; the result calls it off. */
export function waitBeside(done, ms) {
  const handle = startTimeout(done, ms);
  return () => stopTimeout(handle);
}

/** Put the clock forward: each timer that is due by then runs at its time, one after the other. */
export async function advance(ms) {
  const until = Date.now() + ms;
  for (;;) {
    const [handle, timer] = [...timers].filter(([, each]) => each.due <= until).sort(([, a], [, b]) => a.due - b.due)[0] ?? [];
    if (timer === undefined) break;
    ahead = Math.max(ahead, timer.due - tell());
    if (timer.every === undefined) {
      timers.delete(handle);
      stopTimeout(handle);
    } else timer.due += timer.every;
    await ran(timer);
  }
  ahead = Math.max(ahead, until - tell());
}

/** One run of a timer, awaited for some seconds where it gives a promise; what it throws is as uncaught as ever. */
async function ran(timer) {
  let late;
  try {
    await Promise.race([timer.run(), new Promise((resolve) => (late = startTimeout(resolve, LONGEST_MS)))]);
  } catch (error) {
    startTimeout(() => {
      throw error;
    }, 0);
  } finally {
    stopTimeout(late);
  }
}
