// Serves a GGUF over OpenAI's chat completions on loopback: node serve_gguf.mjs FILE PORT, beside the package node-llama-cpp.
// Prints a line of JSON with its url when it is ready. Tools of a request are left out: small models cannot call them.

import { createServer } from "node:http";
import { getLlama, LlamaChatSession } from "node-llama-cpp";

const [file, port] = process.argv.slice(2);
const llama = await getLlama({ gpu: false, build: "never", logLevel: "error" });
const model = await llama.loadModel({ modelPath: file });
const context = await model.createContext({ contextSize: 4096, threads: 1 });
let last = Promise.resolve();

async function answerTo({ messages, max_tokens: maxTokens = 64, temperature = 0 }) {
	const sequence = context.getSequence();
	try {
		const system = messages.filter((each) => each.role === "system").map((each) => each.content);
		const session = new LlamaChatSession({ contextSequence: sequence, systemPrompt: system.join("\n\n") || undefined });
		const history = messages.filter((each) => each.role === "user").map((each) => each.content);
		return await session.prompt(history.join("\n\n"), { maxTokens, temperature });
	} finally {
		sequence.dispose();
	}
}

function event(delta, reason) {
	return `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
}

const server = createServer(async (request, response) => {
	const pieces = [];
	for await (const piece of request) pieces.push(piece);
	// One at a time: the model has one context.
	last = last.then(async () => {
		try {
			const text = await answerTo(JSON.parse(Buffer.concat(pieces).toString()));
			response.writeHead(200, { "content-type": "text/event-stream" });
			response.end(event({ content: text }, null) + event({}, "stop") + "data: [DONE]\n\n");
		} catch (error) {
			response.writeHead(500, { "content-type": "application/json" });
			response.end(JSON.stringify({ error: { message: String(error) } }));
		}
	});
});
server.listen(Number(port), "127.0.0.1", () => {
	console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}/v1` }));
});
