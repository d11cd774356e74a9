// A worker for Steadfast in TypeScript, with nothing but Node's own `fetch` (Node 18 or later).
//
// It asks for tasks of a queue, keeps each by heartbeats while it works, and hands in what came of it. A task that it cannot finish goes to another
// worker; the id of a task is the same for every attempt, so that whoever is called can tell a repetition.
//
//     node worker.ts http://127.0.0.1:7400 greetings                     Node 22.18 or later runs it as it is
//     npm ci && npx tsc && node worker.js http://127.0.0.1:7400 greetings    any other

declare const process: { readonly argv: readonly string[]; exitCode?: number };

const LEASE_SECONDS = 30;
const TIMEOUT_MS = 90_000;
const ASK_AGAIN_MS = 1_000;

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

interface Task {
  readonly id: string;
  readonly lease: string;
  readonly attempt: number;
  readonly run_id: string;
  readonly node: string;
  readonly queue: string;
  readonly input: Json;
}

/** The task belongs to somebody else by now: leave it alone. */
class LeaseLost extends Error {}

/** A failure that no further attempt can mend. */
class Final extends Error {}

async function call<Answer>(url: string, path: string, body: object): Promise<Answer> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (response.status === 409) throw new LeaseLost(path);
  if (!response.ok) throw new Error(`${path} was answered with ${response.status}: ${await response.text()}`);
  return (await response.json()) as Answer;
}

/** The work itself. */
async function handle(task: Task): Promise<Json> {
  const { input } = task;
  const name = input !== null && typeof input === "object" && !Array.isArray(input) ? input["name"] : undefined;
  if (typeof name !== "string" || name === "") throw new Final("the input has no `name`");
  return { text: `hello ${name}`, worker: "typescript" };
}

/** Says that the work goes on, three times in each lease, until it is stopped. */
function keep(url: string, task: Task): () => void {
  const beat = () => {
    call(url, `/v1/tasks/${task.id}/heartbeat`, { lease: task.lease }).catch(stop);
  };
  const timer = setInterval(beat, (LEASE_SECONDS * 1000) / 3);
  const stop = () => clearInterval(timer);
  return stop;
}

async function outcome(task: Task): Promise<{ path: string; said: object }> {
  try {
    return { path: "complete", said: { result: await handle(task) } };
  } catch (error) {
    // Whatever it was, the run is told.
    return { path: "fail", said: { error: { message: message(error), retryable: !(error instanceof Final) } } };
  }
}

async function workOn(url: string, task: Task): Promise<void> {
  const stop = keep(url, task);
  const { path, said } = await outcome(task);
  stop();
  try {
    await call(url, `/v1/tasks/${task.id}/${path}`, { lease: task.lease, ...said });
    console.log(`done with ${task.id}`);
  } catch (error) {
    if (!(error instanceof LeaseLost)) throw error;
    console.error(`${task.id} went to another worker`);
  }
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function main(url: string, queue: string): Promise<never> {
  const ask = { queue, worker: "typescript", max: 10, wait: "20s", visibility: `${LEASE_SECONDS}s` };
  console.log(`asking ${url} for tasks of ${queue}`);
  for (;;) {
    try {
      const { tasks } = await call<{ tasks: Task[] }>(url, "/v1/tasks/lease", ask);
      for (const task of tasks) await workOn(url, task);
    } catch (error) {
      // The server is not there, or starts again.
      console.error(`asking again in a second: ${message(error)}`);
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
    }
  }
}

const [, , url, queue] = process.argv;
if (url === undefined || queue === undefined) {
  console.error("usage: node worker.ts URL QUEUE");
  process.exitCode = 2;
} else {
  await main(url, queue);
}
