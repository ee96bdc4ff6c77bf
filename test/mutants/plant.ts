import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';
import type { Fault } from './faults.js';

/** A part of a file. */
interface Place {
  /** Relative to the checkout. */
  readonly file: string;
  readonly start: number;
  readonly end: number;
}

/** The beginning of a function in SQL, and its end. */
const SQL_FUNCTION = /create (?:or replace )?function public\.(\w+)\(.*?\$\$;$/gms;

/** @returns what has a name in the sources: functions, methods, constants, and the last form of each function in SQL */
export function findPlaces(root: URL): ReadonlyMap<string, readonly Place[]> {
  const places = new Map<string, Place[]>();
  const add = (name: string, place: Place): void => void places.set(name, [...(places.get(name) ?? []), place]);
  for (const file of filesOf(root, 'src/', /\.tsx?$/)) {
    const source = ts.createSourceFile(file, readFileSync(new URL(file, root), 'utf8'), ts.ScriptTarget.Latest, true);
    const visit = (node: ts.Node, owner: string): void => {
      const name = isNamed(node) ? node.name?.getText() : undefined;
      if (name !== undefined) {
        const place = { file, start: node.getStart(), end: node.end };
        add(`${owner}${name}`, place);
        add(`${file.replace(/^src\/|\.tsx?$/g, '')}#${owner}${name}`, place);
      }
      ts.forEachChild(node, (child) => visit(child, ts.isClassDeclaration(node) ? `${name}.` : owner));
    };
    ts.forEachChild(source, (node) => visit(node, ''));
  }
  for (const file of filesOf(root, 'db/migrations/', /\.sql$/)) {
    for (const { 0: text, 1: name = '', index } of readFileSync(new URL(file, root), 'utf8').matchAll(SQL_FUNCTION)) {
      places.set(name, [{ file, start: index, end: index + text.length }]);
    }
  }
  return places;
}

function isNamed(node: ts.Node): node is ts.FunctionDeclaration | ts.MethodDeclaration | ts.VariableDeclaration {
  return (
    ts.isFunctionDeclaration(node) ||
    ts.isMethodDeclaration(node) ||
    ts.isClassDeclaration(node) ||
    // Constants of modules; those of functions belong to their function.
    (ts.isVariableDeclaration(node) && ts.isSourceFile(node.parent.parent.parent))
  );
}

function filesOf(root: URL, folder: string, pattern: RegExp): string[] {
  const names = readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => pattern.test(name))
    .sort()
    .map((name) => `${folder}${name}`);
}

/**
 * Plants a fault in memory.
 *
 * @param root - the folder of a checkout
 * @returns the file that the fault changes, with its content before and after
 * @throws Error when the fault no longer applies to the code, or what it makes is no TypeScript
 */
export function plant({ of, swap: [from, to] }: Fault, places: ReturnType<typeof findPlaces>, root: URL) {
  const [place, ...others] = places.get(of) ?? [];
  if (place === undefined || others.length > 0)
    throw new Error(`${of} has ${others.length + (place ? 1 : 0)} places in the sources`);
  const before = readFileSync(new URL(place.file, root), 'utf8');
  const text = before.slice(place.start, place.end);
  const found = text.split(from).length - 1;
  if (found !== 1) throw new Error(`"${from}" occurs ${found} times in ${of} (${place.file})`);
  // A function, because a replacement string would interpret dollar signs.
  const after = before.slice(0, place.start) + text.replace(from, () => to) + before.slice(place.end);
  const [wrong] = syntaxErrors(place.file, after);
  if (wrong !== undefined) throw new Error(`${of} is no TypeScript then: ${wrong}`);
  return { file: new URL(place.file, root), before, after };
}

function syntaxErrors(fileName: string, text: string): readonly string[] {
  if (fileName.endsWith('.sql')) return [];
  const { diagnostics = [] } = ts.transpileModule(text, { fileName, reportDiagnostics: true });
  return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '));
}
