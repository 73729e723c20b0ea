// Measures how long a busy machine delayed this program while a handler of the connector ran (SIG-FAIL-002).

import { readFileSync } from "node:fs";

const TICK_MS = 50;

/**
 * A timer that ticks while a handler runs. If it fires late, either the machine was busy, or the plugin, which shares
 * this program's thread, blocked it. Time in which the program had the processor is the plugin's. So is time in which
 * the thread did not wait for the processor, as in a synchronous request. Only Linux says how long a thread waited for
 * the processor; elsewhere such a request counts as the machine's delay, and a slow handler is only a note.
 */
export class Lateness {
  #longestMs = 0;
  #startMs;
  #startProcessorMs;
  #startQueuedMs;
  #cancel;
  #schedule;

  /** `schedule(callback, ms)` calls back after that real time, and returns a function that cancels it. */
  constructor(schedule = scheduleInRealTime) {
    this.#schedule = schedule;
    this.#startTick();
  }

  #startTick() {
    this.#startMs = performance.now();
    this.#startProcessorMs = processorMs();
    this.#startQueuedMs = queuedMs();
    this.#cancel = this.#schedule(() => {
      this.#measureTick();
      this.#startTick();
    }, TICK_MS);
  }

  #measureTick() {
    const tookMs = performance.now() - this.#startMs;
    const lateMs = Math.min(tookMs - TICK_MS, tookMs - (processorMs() - this.#startProcessorMs));
    if (lateMs <= this.#longestMs) return;
    const queued = queuedMs();
    this.#longestMs = queued === undefined ? lateMs : Math.max(this.#longestMs, Math.min(lateMs, queued - this.#startQueuedMs));
  }

  /** Stop the timer, and return how late its latest tick was, in milliseconds. */
  end() {
    this.#cancel();
    // No timer fired if the handler kept the thread all the time.
    this.#measureTick();
    return Math.round(this.#longestMs * 10) / 10;
  }
}

function scheduleInRealTime(callback, ms) {
  const timer = setTimeout(callback, ms);
  return () => clearTimeout(timer);
}

function processorMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** How long this thread has waited for the processor so far; undefined if the system does not say. */
function queuedMs() {
  try {
    const [ran, queued] = readFileSync("/proc/thread-self/schedstat", "utf8").split(" ");
    return ran === "0" ? undefined : Number(queued) / 1e6;
  } catch {
    return undefined;
  }
}
