import type { Command } from 'commander';
import type { Writable } from 'node:stream';
import { addExamples } from './help.js';

/**
 * Adds a command with the option `--json`, see {@link report}.
 *
 * @param examples - the last part of its help, below the texts that the command adds itself
 */
export function addJsonCommand(parent: Command, name: string, ...examples: readonly string[]): Command {
  return addExamples(parent.command(name).option('--json', 'print one JSON document'), examples);
}

/**
 * Writes what a command has done: as a JSON document alone with `--json`, otherwise as text.
 *
 * @param document - its names are written in snake case: `planId` becomes `plan_id`
 * @param text - lines for people, the last one without its line end
 */
export function report(output: Writable, json: boolean | undefined, document: object, text: string): void {
  output.write(`${json ? JSON.stringify(document, toSnakeCase, 2) : text}\n`);
}

export function printLine(output: Writable, line: string): void {
  output.write(`${line}\n`);
}

/** @returns a line about a failure that may be temporary @param reason - a clause */
export function retryingLine(reason: string, waitMs: number): string {
  return `${reason}. Retrying in ${Math.ceil(waitMs / 1000)} s.`;
}

function toSnakeCase(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const rename = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [rename(name), member]));
}
