// Catches a connector's errors outside of any handler call: in a promise that it does not await, or in a timer.

import { inspect } from "node:util";

/** Stands in the place of the handler's name. */
const STRAY = "a promise or timer of its own";
const MOST_STRAYS = 20;
const MOST_TEXT = 2000;
const PLACE = /(?:^|[\s(])(?:file:\/\/)?(\/[^\s()]+?):\d+(?::\d+)?\)?$/m;

/**
 * Catch such errors from now on. Return a function that takes those since its last call, in the form of handler calls.
 *
 * `ends` says that the harness would end with such an error. An error from the folder `own` is the driver's, and ends it.
 */
export function watchStrays(own, ends) {
  let strays = [];
  const note = (error) => {
    const text = textOf(error);
    console.error("nobody catches:", text);
    const stray = { event: STRAY, thrown: text.slice(0, MOST_TEXT), lost: ends };
    if (strays.length < MOST_STRAYS) strays.push(stray);
    return stray;
  };
  const rejected = new WeakMap();
  process.on("unhandledRejection", (error, promise) => rejected.set(promise, note(error)));
  // If the harness does not end, the connector has caught this error after all, only later.
  process.on("rejectionHandled", (promise) => {
    if (!ends) strays = strays.filter((each) => each !== rejected.get(promise));
  });
  // Not checked for rejections: the stack of a request that the connector does not await holds functions of the driver.
  process.on("uncaughtException", (error) => {
    const place = PLACE.exec(textOf(error))?.[1];
    if (place === undefined || !decoded(place).startsWith(own)) return void note(error);
    console.error(error);
    process.exit(1);
  });
  return () => {
    const calls = strays;
    strays = [];
    return calls;
  };
}

/** An error's stack; for any other value that is thrown, its inspection. */
function textOf(error) {
  try {
    if (typeof error?.stack === "string" && error.stack !== "") return error.stack;
    return inspect(error);
  } catch {
    return "an error that cannot be shown";
  }
}

function decoded(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
