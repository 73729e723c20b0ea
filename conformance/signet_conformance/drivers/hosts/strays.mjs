// What a connector throws where nobody catches it: a promise that it does not await, a timer of its own.

import { inspect } from "node:util";

/** Stands for the handler where an error came from none. */
const STRAY = "a promise or timer of its own";
const MOST_STRAYS = 20;
const MOST_TEXT = 2000;
const PLACE = /(?:^|[\s(])(?:file:\/\/)?(\/[^\s()]+?):\d+(?::\d+)?\)?$/m;

/**
 * Catch such errors from now on. The result takes those since it was last called, as calls of a handler in an answer.
 *
 * `ends` tells that one would end the harness. Code in the folder `own` is the driver's: what it throws ends the driver.
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
  // A harness that lives on has somebody who catches it after all.
  process.on("rejectionHandled", (promise) => {
    if (!ends) strays = strays.filter((each) => each !== rejected.get(promise));
  });
  // Not asked of a promise: the driver's own functions stand in the stack of a request that the connector does not await.
  process.on("uncaughtException", (error) => {
    const place = PLACE.exec(textOf(error))?.[1];
    if (place === undefined || !decoded(place).startsWith(own)) return void note(error);
    console.error(error);
    process.exit(1);
  });
  return () => {
    const taken = strays;
    strays = [];
    return taken;
  };
}

/** An error with its stack; anything else that is thrown as one would write it down. */
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
