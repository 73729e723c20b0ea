// By how much the machine kept this program waiting while a handler of the connector ran (SIG-FAIL-002).

import { waitBeside } from "./clock.mjs";

const TICK_MS = 50;

/**
 * A timer that runs beside a handler. Programs of others run beside the driver, so a late timer there tells of the
 * machine; a plugin shares this program's thread, and may hold the timer up by itself. Time in which the program had
 * the processor is therefore the plugin's. What is left is the machine's, or a plugin's that sleeps without giving the
 * thread back, which nothing here tells apart: then the timer counts as late, and the handler is only told of.
 */
export class Lateness {
  #most = 0;
  #began;
  #ran;
  #stop;

  constructor() {
    this.#tick();
  }

  #tick() {
    this.#began = performance.now();
    this.#ran = processorMs();
    this.#stop = waitBeside(() => {
      this.#look();
      this.#tick();
    }, TICK_MS);
  }

  #look() {
    const took = performance.now() - this.#began;
    this.#most = Math.max(this.#most, Math.min(took - TICK_MS, took - (processorMs() - this.#ran)));
  }

  /** Stop the timer; return the most milliseconds that it was late. */
  end() {
    this.#stop();
    // A handler that never gave the thread back let no timer run.
    this.#look();
    return Math.round(this.#most * 10) / 10;
  }
}

function processorMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
