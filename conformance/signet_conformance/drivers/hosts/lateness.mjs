// By how much the machine kept this program waiting while a handler of the connector ran (SIG-FAIL-002).

import { readFileSync } from "node:fs";

const TICK_MS = 50;

/**
 * A timer that runs beside a handler. Programs of others run beside the driver, so a late timer there tells of the
 * machine; a plugin shares this program's thread, and may hold the timer up by itself. Time in which the program had
 * the processor is therefore the plugin's, and so is time in which the thread did not want it, as in a synchronous
 * request. Where the system does not say what a thread wanted, such a plugin cannot be told from a busy machine: the
 * timer counts as late, and the handler is only told of.
 */
export class Lateness {
  #most = 0;
  #began;
  #ran;
  #queued;
  #stop;
  #wait;

  /** `wait` calls a function in so many milliseconds of real time, and returns what calls it off. */
  constructor(wait = waitInRealTime) {
    this.#wait = wait;
    this.#tick();
  }

  #tick() {
    this.#began = performance.now();
    this.#ran = processorMs();
    this.#queued = queuedMs();
    this.#stop = this.#wait(() => {
      this.#look();
      this.#tick();
    }, TICK_MS);
  }

  #look() {
    const took = performance.now() - this.#began;
    const late = Math.min(took - TICK_MS, took - (processorMs() - this.#ran));
    if (late <= this.#most) return;
    const queued = queuedMs();
    this.#most = queued === undefined ? late : Math.max(this.#most, Math.min(late, queued - this.#queued));
  }

  /** Stop the timer; return the most milliseconds that it was late. */
  end() {
    this.#stop();
    // A handler that never gave the thread back let no timer run.
    this.#look();
    return Math.round(this.#most * 10) / 10;
  }
}

function waitInRealTime(done, ms) {
  const timer = setTimeout(done, ms);
  return () => clearTimeout(timer);
}

function processorMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** For how long this thread has wanted the processor and not got it; undefined where the system does not say. */
function queuedMs() {
  try {
    const [ran, queued] = readFileSync("/proc/thread-self/schedstat", "utf8").split(" ");
    return ran === "0" ? undefined : Number(queued) / 1e6;
  } catch {
    return undefined;
  }
}
