// What a connector throws where nobody catches it: a promise that it does not await, a timer of its own.

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
    console.error("nobody catches:", error);
    if (strays.length < MOST_STRAYS) {
      strays.push({ event: STRAY, thrown: String(error?.stack ?? error).slice(0, MOST_TEXT), lost: ends });
    }
  };
  process.on("unhandledRejection", note);
  process.on("uncaughtException", (error) => {
    const place = PLACE.exec(String(error?.stack))?.[1];
    if (place?.startsWith(own)) {
      console.error(error);
      process.exit(1);
    }
    note(error);
  });
  return () => {
    const taken = strays;
    strays = [];
    return taken;
  };
}
