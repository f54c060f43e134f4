// A gateway behind --exec: the official Node client on recorded bytes. Put yours where `assemble` is.
//
//   npm install openai
//   fragmentlab qualify data/vectors --revision my-1 --exec "node docs/examples/gateway_openai.mjs"
//
// With --long-lived (given to the kit and to this script) one process takes all streams, many times faster.

import OpenAI from "openai";
import { argv, env, stdin, stdout } from "node:process";

const REASONS = [
  [OpenAI.LengthFinishReasonError, "completion.length"],
  [OpenAI.ContentFilterFinishReasonError, "completion.content_filter"],
  [OpenAI.APIConnectionError, "completion.transport_error"],
  [SyntaxError, "event.invalid_json"],
];

// Give the bytes of one response to the client, as its network would, and return the calls it hands out.
async function assemble(body, end) {
  const reads = new ReadableStream({
    start(controller) {
      controller.enqueue(body);
      if (end === "aborted") controller.error(new TypeError("connection reset"));
      else controller.close();
    },
  });
  const client = new OpenAI({
    apiKey: "unused",
    baseURL: "http://recorded.invalid/v1",
    maxRetries: 0,
    fetch: async () => new Response(reads, { headers: { "content-type": "text/event-stream" } }),
  });
  const stream = client.chat.completions.stream({ model: "any", messages: [{ role: "user", content: "any" }] });
  const completion = await stream.finalChatCompletion();
  return (completion.choices[0]?.message.tool_calls ?? []).map((call, index) => ({
    index,
    id: call.id,
    name: call.function?.name,
    arguments: call.function?.arguments,
  }));
}

// The object that the kit reads: an outcome, and calls or a category.
async function outcome(body, end) {
  try {
    const calls = await assemble(body, end);
    return calls.length ? { outcome: "accepted", calls } : { outcome: "no_calls" };
  } catch (error) {
    const known = REASONS.find(([kind]) => kind && error instanceof kind);
    return { outcome: "rejected", category: known ? known[1] : "client_error" };
  }
}

async function once() {
  const reads = [];
  for await (const read of stdin) reads.push(read);
  stdout.write(JSON.stringify(await outcome(Buffer.concat(reads), env.FRAGMENTLAB_END)));
}

// One line of JSON with the length, then that many bytes; for each stream one line back.
async function longLived() {
  let held = Buffer.alloc(0);
  let header = null;
  for await (const read of stdin) {
    held = Buffer.concat([held, read]);
    for (;;) {
      if (!header) {
        const newline = held.indexOf(10);
        if (newline < 0) break;
        header = JSON.parse(held.subarray(0, newline).toString());
        held = held.subarray(newline + 1);
      }
      if (held.length < header.length) break;
      const body = held.subarray(0, header.length);
      held = held.subarray(header.length);
      stdout.write(JSON.stringify(await outcome(body, header.end)) + "\n");
      header = null;
    }
  }
}

// A client that rejects a promise nobody waits for must not end the process.
process.on("unhandledRejection", () => {});
await (argv.includes("--long-lived") ? longLived() : once());
