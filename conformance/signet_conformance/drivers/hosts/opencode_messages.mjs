// Messages of OpenCode as its server makes them: the information about a message, and its parts.

import { randomBytes } from "node:crypto";
import { join } from "node:path";

import { PIXEL } from "./turns.mjs";

export const MODEL = { providerID: "scripted", modelID: "scripted-model" };

export const identifier = (kind) => `${kind}_${randomBytes(13).toString("hex")}`;

/** A new message of the user, or of another role on the user's side. */
export function userMessage(sessionID, role = "user") {
  return { id: identifier("msg"), role, sessionID, time: { created: Date.now() }, agent: "build", model: MODEL };
}

/** A new message of the model. */
export function modelMessage(sessionID, more = {}) {
  return { id: identifier("msg"), role: "assistant", sessionID, time: { created: Date.now() }, mode: "build", ...MODEL, ...more };
}

/** A new part of a message. */
export function partOf(message, type, members = {}) {
  return { id: identifier("prt"), sessionID: message.sessionID, messageID: message.id, type, ...members };
}

/** The parts that the server makes of an attachment before plugins get it: most are texts of the server itself. */
export function attachmentParts(kind, directory) {
  const path = join(directory, kind === "image" ? "pixel.png" : "notes.txt");
  const own = (text) => ({ type: "text", synthetic: true, text });
  const call = own(`Called the Read tool with the following input: ${JSON.stringify({ filePath: path })}`);
  if (kind === "image") {
    const file = { type: "file", mime: "image/png", url: `data:image/png;base64,${PIXEL}`, synthetic: true, filename: "pixel.png" };
    return [call, own("Image read successfully"), file];
  }
  const read = "<content>\n1: Exports of the ledger run at two.\n\n(End of file - total 1 lines)\n</content>";
  const file = { type: "file", mime: "text/plain", filename: "notes.txt", url: `file://${path}` };
  return [call, own(`<path>${path}</path>\n<type>file</type>\n${read}`), file];
}
