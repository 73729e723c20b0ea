// Finds where in a connector's code its requests are sent: `sent` in the answer to a step (docs/driver-protocol.md).

const MOST_REQUESTS = 100;
const MOST_PLACES = 3;
const FRAMES = 30;
const FRAME = /(?:^|[\s(])(?:file:\/\/)?(\/[^()]+?:\d+(?::\d+)?)\)?$/;

/**
 * Note from now on which requests `fetch` sends to the daemon, without changing them. Return a function that takes the
 * requests noted since its last call.
 *
 * Places in the folder `own` are left out: that code is the driver's.
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
    const requests = sent;
    sent = [];
    return requests;
  };
}

/** The port of an address; undefined if it is not an address. Hosts are not compared: a machine has several names. */
const portOf = (address) => (URL.canParse(address ?? "") ? new URL(address).port : undefined);

/** Method and path of a call of fetch; undefined if it goes elsewhere, or if fetch itself will refuse it. */
function requestOf([resource, options]) {
  try {
    const request = resource instanceof Request ? resource : { url: resource, method: "GET" };
    const port = portOf(process.env.SIGNET_DAEMON_URL);
    if (port !== undefined && portOf(request.url) !== port) return undefined;
    return { method: String(options?.method ?? request.method).toUpperCase(), path: new URL(request.url).pathname };
  } catch {
    return undefined;
  }
}

/** The places from which the function `callee` was called, innermost first. */
function placesOf(callee, own) {
  const holder = {};
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAMES;
  Error.captureStackTrace(holder, callee);
  Error.stackTraceLimit = limit;
  const places = String(holder.stack).split("\n").map((line) => FRAME.exec(line)?.[1]);
  return places.filter((place) => place && !place.startsWith(own)).map(decoded).slice(0, MOST_PLACES);
}

/** A place with its spaces and non-ASCII letters decoded, as file addresses encode them. */
function decoded(place) {
  try {
    return decodeURI(place);
  } catch {
    return place;
  }
}
