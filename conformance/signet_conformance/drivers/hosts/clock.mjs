// Replaces this program's clock and timers, so that a step can advance them: a plugin's timers then run without waiting.

const { setTimeout: startTimeout, setInterval: startInterval, clearTimeout: stopTimeout, clearInterval: stopInterval } = globalThis;
const { now: realNow } = Date;
const LONGEST_MS = 10_000;
const timers = new Map();
let ahead = 0;

Date.now = () => realNow() + ahead;

/** A replacement of setTimeout or setInterval that notes each timer and when it is due. */
function tracked(start, repeats) {
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
  // node's promisify of a timeout uses a symbol member of the function.
  for (const symbol of Object.getOwnPropertySymbols(start)) make[symbol] = start[symbol];
  return make;
}

/** A replacement of clearTimeout or clearInterval that forgets the timer too. */
const forgetting = (stop) => (handle) => {
  timers.delete(handle);
  stop(handle);
};

globalThis.setTimeout = tracked(startTimeout, false);
globalThis.setInterval = tracked(startInterval, true);
globalThis.clearTimeout = forgetting(stopTimeout);
globalThis.clearInterval = forgetting(stopInterval);

/** Call back after so many milliseconds of real time, even if the clock is advanced. Return a function that cancels it. */
export function afterRealTime(callback, ms) {
  const handle = startTimeout(callback, ms);
  return () => stopTimeout(handle);
}

/** Advance the clock. Each timer that becomes due runs at its time, one after the other. */
export async function advance(ms) {
  const until = Date.now() + ms;
  for (;;) {
    const [handle, timer] = [...timers].filter(([, each]) => each.due <= until).sort(([, a], [, b]) => a.due - b.due)[0] ?? [];
    if (timer === undefined) break;
    ahead = Math.max(ahead, timer.due - realNow());
    if (timer.every === undefined) {
      timers.delete(handle);
      stopTimeout(handle);
    } else timer.due += timer.every;
    await run(timer);
  }
  ahead = Math.max(ahead, until - realNow());
}

/** Run a timer once. If it returns a promise, wait for that, at most LONGEST_MS. Its errors stay uncaught. */
async function run(timer) {
  let limit;
  try {
    await Promise.race([timer.run(), new Promise((resolve) => (limit = startTimeout(resolve, LONGEST_MS)))]);
  } catch (error) {
    startTimeout(() => {
      throw error;
    }, 0);
  } finally {
    stopTimeout(limit);
  }
}
