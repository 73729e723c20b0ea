// Where in the code of a connector its requests are sent: `sent` of an answer to a step (docs/driver-protocol.md).

const MOST_REQUESTS = 100;
const MOST_PLACES = 3;
const FRAMES = 30;
const FRAME = /(?:^|[\s(])(?:file:\/\/)?(\/[^()]+?:\d+(?::\d+)?)\)?$/;

/**
 * Watch what `fetch` sends to the daemon from now on; what is sent stays as it is. The result takes the requests since
 * it was last called.
 *
 * Code in the folder `own` is the driver's and no place in the connector.
 */
export function watchSent(own) {
  const original = globalThis.fetch;
  let sent = [];
  const watched = (...args) => {
    const request = sent.length < MOST_REQUESTS ? requestOf(args) : undefined;
    const at = request ? placesOf(watched, own) : [];
    if (at.length > 0) sent.push({ ...request, at });
    return original(...args);
  };
  globalThis.fetch = Object.assign(watched, original);
  return () => {
    const taken = sent;
    sent = [];
    return taken;
  };
}

/** The port of an address, by whatever name its machine is called; nothing for what is none. */
const portOf = (address) => (URL.canParse(address ?? "") ? new URL(address).port : undefined);

/** Method and path; nothing for what fetch itself will refuse, and for what goes elsewhere. */
function requestOf([what, how]) {
  try {
    const given = what instanceof Request ? what : { url: what, method: "GET" };
    const port = portOf(process.env.SIGNET_DAEMON_URL);
    if (port !== undefined && portOf(given.url) !== port) return undefined;
    return { method: String(how?.method ?? given.method).toUpperCase(), path: new URL(given.url).pathname };
  } catch {
    return undefined;
  }
}

/** The places that lead to a call of `caller`, the innermost first. */
function placesOf(caller, own) {
  const told = {};
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAMES;
  Error.captureStackTrace(told, caller);
  Error.stackTraceLimit = limit;
  const places = String(told.stack).split("\n").map((line) => FRAME.exec(line)?.[1]);
  return places.filter((place) => place && !place.startsWith(own)).map(decoded).slice(0, MOST_PLACES);
}

/** A file address has its spaces and foreign letters encoded. */
function decoded(place) {
  try {
    return decodeURI(place);
  } catch {
    return place;
  }
}
