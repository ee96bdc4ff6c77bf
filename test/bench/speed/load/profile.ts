import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { Profiler } from 'node:inspector';
import { join } from 'node:path';
import type { Subject } from '../servers.js';

/** Where the time of a server goes: parts of 1, by module. Idle time does not count. */
export type Shares = ReadonlyMap<string, number>;

/** Bound on a step of the profiler, in milliseconds. */
const PROFILER_TIMEOUT_MS = 30_000;

/** Takes a CPU profile of a server while something is done to it. */
export async function takeProfile(subject: Subject, folder: string, load: () => Promise<unknown>): Promise<Shares> {
  const file = join(folder, `${subject.name}.cpuprofile`);
  await tell(subject, 'start');
  await load();
  await tell(subject, file);
  return sharesOf(JSON.parse(await readFile(file, 'utf8')) as Profiler.Profile);
}

/** Makes a server free the memory that it needs no longer, so that its memory tells what it needs. */
export function collectGarbage(subject: Subject): Promise<void> {
  return tell(subject, 'collect');
}

async function tell({ child }: Subject, message: string): Promise<void> {
  const answered = once(child, 'message', { signal: AbortSignal.timeout(PROFILER_TIMEOUT_MS) });
  child.send(message);
  await answered;
}

/** Time that is the profiler's own, or nobody's. */
const LEFT_OUT = new Set(['idle', 'profiler']);

/** @returns the self time of each module: a function counts for the file it stands in, not for what it calls */
function sharesOf({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): Shares {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const moduleOfNode = (node: Profiler.ProfileNode | undefined): string => {
    if (node === undefined) return OUTSIDE_JAVASCRIPT;
    const { functionName, url } = node.callFrame;
    const special = SPECIAL_FRAMES.get(functionName);
    if (special !== undefined && url === '') return special;
    // A function of V8's or Node's that is not in JavaScript, such as writev, counts for the one that called it.
    return url === '' ? moduleOfNode(byId.get(parents.get(node.id) ?? NaN)) : moduleOfFile(url);
  };
  const times = new Map<string, number>();
  samples.forEach((id, i) => {
    const module = moduleOfNode(byId.get(id));
    if (!LEFT_OUT.has(module)) times.set(module, (times.get(module) ?? 0) + (timeDeltas[i] ?? 0));
  });
  const total = [...times.values()].reduce((sum, time) => sum + time, 0);
  return new Map([...times].map(([module, time]) => [module, time / total]));
}

const OUTSIDE_JAVASCRIPT = 'outside JavaScript';

/** What V8 calls time in which no function runs. */
const SPECIAL_FRAMES = new Map([
  ['(garbage collector)', 'garbage collection'],
  ['(program)', OUTSIDE_JAVASCRIPT],
  ['(root)', OUTSIDE_JAVASCRIPT],
  ['(idle)', 'idle'],
]);

/** Node's own modules by area; the first that fits counts. */
const NODE_AREAS: readonly (readonly [RegExp, string])[] = [
  [/^node:(internal\/)?inspector/, 'profiler'],
  [/^node:(_http|internal\/http)/, 'node: http'],
  [/^node:(net|internal\/(net|stream_base_commons))/, 'node: net'],
  [/^node:(_?stream|internal\/streams)/, 'node: streams'],
  [/^node:(crypto|internal\/crypto)/, 'node: crypto'],
  [/^node:(timers|internal\/(timers|priority_queue|linkedlist))/, 'node: timers'],
  [/^node:(async_hooks|diagnostics_channel|internal\/(process|promise|async))/, 'node: ticks, promises'],
  [/^node:(url|querystring|internal\/(url|querystring))/, 'node: url'],
  [/^node:(buffer|internal\/buffer)/, 'node: buffer'],
  [/^node:(fs|internal\/fs)/, 'node: fs'],
  [/^node:events/, 'node: events'],
  [/^node:/, 'node: other'],
];

function moduleOfFile(url: string): string {
  const area = NODE_AREAS.find(([pattern]) => pattern.test(url))?.[1];
  if (area !== undefined) return area;
  const inPackage = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url);
  return inPackage?.[1] ?? url.replace(/^.*\/(?:\.build|\.cache\/bench)\/(.*)\.js$/, '$1.ts');
}
