// Plays the host's request to the model's vendor, since a connector may replace `fetch` and change that request. Nothing
// leaves this machine.

const VENDOR = "https://api.anthropic.com/v1/messages";

/** The host's request that is under way, with its body once that has arrived here. */
let underWay;

/** Answer the host's requests to the vendor here from now on. A `fetch` that the connector installs later sees them first. */
export function interceptVendor() {
  const original = globalThis.fetch;
  const intercepting = async (...args) => {
    if (underWay === undefined || urlOf(args[0]) !== VENDOR) return original(...args);
    underWay.body = await new Request(...args).text();
    return Response.json({ type: "message", role: "assistant", content: [] });
  };
  globalThis.fetch = Object.assign(intercepting, original);
}

const urlOf = (resource) => String(resource instanceof Request ? resource.url : resource);

/** The user's text as the vendor gets it; `text` itself if the request does not show it. */
export async function textAtVendor(text, model) {
  underWay = {};
  const body = JSON.stringify({ model, messages: [{ role: "user", content: text }] });
  try {
    await globalThis.fetch(VENDOR, { method: "POST", headers: { "content-type": "application/json" }, body });
    const [message] = JSON.parse(underWay.body).messages;
    return typeof message.content === "string" ? message.content : text;
  } catch (error) {
    console.error("the request to the model:", error);
    return text;
  } finally {
    underWay = undefined;
  }
}
