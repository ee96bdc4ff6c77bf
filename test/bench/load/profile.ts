import { readdir, readFile } from 'node:fs/promises';
import type { Profiler } from 'node:inspector';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Samples that are not the program's work. */
const LEFT_OUT = new Set(['idle', 'profiler']);

/** The arguments of Node.js that make it write a CPU profile into a folder when it ends. */
export function profilingArguments(folder: string): readonly string[] {
  return ['--cpu-prof', '--cpu-prof-dir', folder];
}

/**
 * Reads the profile that a server wrote when it exited.
 *
 * @returns the part of its CPU time that each module takes, the largest first. A function counts for the file that has
 *   it, not for what it calls
 */
export async function readProfile(folder: string): Promise<[module: string, part: number][]> {
  const [file = ''] = (await readdir(folder)).filter((name) => name.endsWith('.cpuprofile'));
  const profile = JSON.parse(await readFile(join(folder, file), 'utf8')) as Profiler.Profile;
  const { nodes, samples = [], timeDeltas = [] } = profile;
  const findSource = await openSourceMaps(nodes.map(({ callFrame }) => callFrame.url));
  const modules = new Map(
    nodes.map(({ id, callFrame }) => [id, moduleOf({ ...callFrame, url: findSource(callFrame) })]),
  );
  const times = new Map<string, number>();
  samples.forEach((id, i) => {
    const module = modules.get(id) ?? '';
    times.set(module, (times.get(module) ?? 0) + (timeDeltas[i] ?? 0));
  });
  const busy = [...times].filter(([module]) => !LEFT_OUT.has(module));
  const all = busy.reduce((sum, [, time]) => sum + time, 0);
  return busy.map(([module, time]): [string, number] => [module, time / all]).sort(([, a], [, b]) => b - a);
}

type CallFrame = Profiler.Profile['nodes'][number]['callFrame'];

/** Reads the source maps of bundled files. @returns a function that finds the URL or path of a function's source */
async function openSourceMaps(urls: readonly string[]): Promise<(frame: CallFrame) => string> {
  const maps = new Map<string, SourceMap>();
  for (const url of new Set(urls)) {
    const text = url.startsWith('file:') ? await readFile(`${fileURLToPath(url)}.map`, 'utf8').catch(() => '') : '';
    if (text !== '') maps.set(url, new SourceMap(JSON.parse(text) as SourceMapPayload));
  }
  return ({ url, lineNumber, columnNumber }) => {
    const entry = maps.get(url)?.findEntry(lineNumber, columnNumber);
    return entry !== undefined && 'originalSource' in entry ? entry.originalSource : url;
  };
}

/** The package, the part of Node.js, or the folder of the service that a function belongs to. */
function moduleOf({ url, functionName }: CallFrame): string {
  if (url === '') return /^\((.+)\)$/.exec(functionName)?.[1] ?? 'native code';
  if (url.startsWith('node:')) return url.replace(/^node:(?:internal\/)?([a-z_]+).*$/, 'node:$1');
  const packageName = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*\/node_modules\/)/.exec(url)?.[1];
  return packageName ?? url.replace(/^.*\/(?:src|\.cache\/bench)\//, '').replace(/\/[^/]+$/, '');
}
