// The native sessions of an OpenClaw gateway, and the files in which it keeps them.

import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const INDEX = "sessions.json";

/** The folder with the files of an agent's sessions. */
const sessionsOf = (agentId) => join(homedir(), ".openclaw", "agents", agentId, "sessions");

/** The sessions in a folder by their keys. */
function readIndex(folder) {
  const file = join(folder, INDEX);
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
}

const appendEntry = (session, type, members) =>
  appendFileSync(session.file, `${JSON.stringify({ type, id: randomUUID().slice(0, 8), ...members })}\n`);

export class SessionFiles {
  #reportsSqlite;

  /** With `reportsSqlite`, plugins get an address of a database instead of the session's file. */
  constructor(reportsSqlite) {
    this.#reportsSqlite = reportsSqlite;
  }

  /** Give the session a new native id and file under the same key, and an empty history; return it. */
  renew(session) {
    const { agentId, sessionKey, workspaceDir } = session;
    const folder = sessionsOf(agentId);
    mkdirSync(folder, { recursive: true });
    const { sessionId } = this.#assignId(session, randomUUID());
    writeFileSync(session.file, `${JSON.stringify({ type: "session", id: sessionId, cwd: workspaceDir })}\n`);
    if (sessionKey !== undefined) {
      writeFileSync(join(folder, INDEX), JSON.stringify({ ...readIndex(folder), [sessionKey]: { sessionId, workspaceDir } }));
    }
    return session;
  }

  /** Read the session that an earlier gateway had under a key; undefined if there is none. */
  read({ agent: agentId = "main", key: sessionKey }) {
    const entry = readIndex(sessionsOf(agentId))[sessionKey];
    if (entry === undefined) return undefined;
    const { sessionId, workspaceDir } = entry;
    const session = this.#assignId({ agentId, sessionKey, workspaceDir }, sessionId);
    for (const line of readFileSync(session.file, "utf8").trimEnd().split("\n").map((text) => JSON.parse(text))) {
      if (line.type === "message") this.#addMessage(session, line.message);
      if (line.type === "compaction") Object.assign(session, { messages: session.messages.slice(-1), uncompacted: 0 });
    }
    return session;
  }

  /** Give the session a native id, and an empty history; return it. */
  #assignId(session, sessionId) {
    const folder = sessionsOf(session.agentId);
    const file = join(folder, `${sessionId}.jsonl`);
    const reportedFile = this.#reportsSqlite ? `sqlite:${join(folder, "sessions.sqlite")}#${sessionId}` : file;
    return Object.assign(session, { sessionId, file, reportedFile, messages: [], uncompacted: 0, compacting: false });
  }

  #addMessage(session, message) {
    session.messages.push(message);
    session.uncompacted += 1;
  }

  /** Add a message to the session, and to its file. */
  writeMessage(session, message) {
    this.#addMessage(session, message);
    appendEntry(session, "message", { message });
  }

  /** Write a summary to the file, and keep only the last message of the session. */
  writeCompaction(session, summary) {
    appendEntry(session, "compaction", { summary, tokensBefore: 1000 });
    session.messages = session.messages.slice(-1);
  }
}
