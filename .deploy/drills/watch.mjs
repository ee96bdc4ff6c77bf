// Sends requests to a deployment until SIGTERM or SIGINT, then prints what clients saw. Besides the drills, use it
// while you rehearse on a staging system: CATALOG_API_KEY=… node watch.mjs https://catalog.staging.example.com
import { Agent as HttpAgent, get as httpGet } from 'node:http';
import { Agent as HttpsAgent, get as httpsGet } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';

/** Clients, each with a connection of its own, and each client's pause between two requests, in milliseconds. */
const CLIENTS = 20;
const PAUSE_MS = 40;

/** A client waits no longer for an answer, in milliseconds. */
const PATIENCE_MS = 10_000;

const PATHS = ['/api/v1/me', '/api/v1/stats'];

const base = new URL(process.argv[2] ?? '');
const [Agent, get] = base.protocol === 'https:' ? [HttpsAgent, httpsGet] : [HttpAgent, httpGet];
const headers = { authorization: `Bearer ${process.env.CATALOG_API_KEY}` };

const began = performance.now();
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
/** How many requests ended in each way. */
const endings = new Map();
let [requests, failures, slowest] = [0, 0, 0];
/** The longest time in which no request at all succeeded. */
let [lastSuccess, longestGap] = [began, 0];
let isOver = false;

/** Sends one request. Resolves to the status, and to who answered if it is a failure. */
function send(path, agent) {
  return new Promise((resolve) => {
    const request = get(new URL(path, base), { agent, headers, timeout: PATIENCE_MS }, (response) => {
      response.once('error', ({ code }) => resolve(`cut off (${code})`));
      response.once('end', () => {
        const { statusCode, headers: fields } = response;
        const isOurs = fields['content-type'] === 'application/problem+json';
        resolve(statusCode === 200 ? '200' : `${statusCode} by the ${isOurs ? 'service' : 'balancer'}`);
      });
      response.resume();
    });
    request.once('timeout', () => request.destroy(Object.assign(new Error(), { code: 'timeout' })));
    request.once('error', ({ code }) => resolve(`no answer (${code})`));
  });
}

async function client(_, number) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let i = number; !isOver; i += 1) {
    const sentAt = performance.now();
    const ending = await send(PATHS[i % PATHS.length], agent);
    const now = performance.now();
    requests += 1;
    slowest = Math.max(slowest, now - sentAt);
    endings.set(ending, (endings.get(ending) ?? 0) + 1);
    if (ending === '200') {
      longestGap = Math.max(longestGap, now - lastSuccess);
      lastSuccess = now;
    } else {
      failures += 1;
    }
    await delay(PAUSE_MS);
  }
  agent.destroy();
}

for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => (isOver = true));
await Promise.all(Array.from({ length: CLIENTS }, client));
longestGap = Math.max(longestGap, performance.now() - lastSuccess);

const list = [...endings].sort().map(([ending, count]) => `${ending}: ${count}`);
console.log(`requests ${requests} in ${seconds(performance.now() - began)}; failed ${failures} (${list.join(', ')})`);
console.log(`longest time without any success ${seconds(longestGap)}; slowest answer ${seconds(slowest)}`);
