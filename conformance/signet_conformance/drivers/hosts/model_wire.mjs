// What becomes of a request to the model's vendor on its way out of the host's process, where a connector has put a
// function of its own in the place of `fetch`. Nothing leaves this machine.

const VENDOR = "https://api.anthropic.com/v1/messages";

/** The host's request that is about to arrive, with its body when it has. */
let sending;

/** Keep such requests from the vendor from now on; what a connector puts over `fetch` later gets them first. */
export function keepFromVendor() {
  const original = globalThis.fetch;
  const kept = async (...args) => {
    if (sending === undefined || urlOf(args[0]) !== VENDOR) return original(...args);
    sending.body = await new Request(...args).text();
    return Response.json({ type: "message", role: "assistant", content: [] });
  };
  globalThis.fetch = Object.assign(kept, original);
}

const urlOf = (what) => String(what instanceof Request ? what.url : what);

/** What the vendor gets of the user's words `said`; the words themselves where the request does not tell. */
export async function asSent(said, model) {
  sending = {};
  const body = JSON.stringify({ model, messages: [{ role: "user", content: said }] });
  try {
    await globalThis.fetch(VENDOR, { method: "POST", headers: { "content-type": "application/json" }, body });
    const [message] = JSON.parse(sending.body).messages;
    return typeof message.content === "string" ? message.content : said;
  } catch (error) {
    console.error("the request to the model:", error);
    return said;
  } finally {
    sending = undefined;
  }
}
