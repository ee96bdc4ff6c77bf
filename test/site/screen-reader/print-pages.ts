import type { Page } from 'playwright-core';
import { startBrowser } from '../../support/programs/browser.js';
import { CHROMIUM, provideProgram } from '../../support/programs/system-program.js';
import { startService } from '../../support/service.js';
import { PAGES, settingsPages } from '../pages.js';
import { createSampleDeveloper } from '../sample-developer.js';
import { signInQuietly } from '../visits.js';

// Prints what Chromium gives a screen reader from each page, or from the pages whose path contains ONLY: a line for each
// element, in reading order. With WIDTH=320 it prints what a phone has. README.md describes how to read it.

const { ONLY = '', WIDTH = '1280' } = process.env;

/** A part of a node of the accessibility tree. */
interface AxValue {
  readonly value?: string | number | boolean;
}

/** A node of the accessibility tree. */
interface AxNode {
  readonly nodeId: string;
  readonly ignored: boolean;
  readonly role?: AxValue;
  readonly name?: AxValue;
  readonly description?: AxValue;
  readonly value?: AxValue;
  readonly properties?: readonly { readonly name: string; readonly value: AxValue }[];
  readonly childIds?: readonly string[];
}

/** Roles that are not read: their children are. */
const SILENT = ['generic', 'none', 'InlineTextBox', 'LineBreak', 'paragraph', 'RootWebArea', 'ListMarker'];

/** Properties that are read when they are set. */
const STATES = ['level', 'checked', 'expanded', 'invalid', 'required', 'disabled', 'live', 'selected', 'valuemax'];

/** Values of a property that is not set. */
const UNSET: readonly AxValue['value'][] = [false, 'false', 'off', ''];

/** @returns a line for each element of a page, in reading order */
async function readPage(page: Page): Promise<readonly string[]> {
  const session = await page.context().newCDPSession(page);
  const { nodes } = (await session.send('Accessibility.getFullAXTree')) as { nodes: readonly AxNode[] };
  await session.detach();
  const byId = new Map(nodes.map((node) => [node.nodeId, node]));
  const lines: string[] = [];
  const read = (node: AxNode, depth: number, nameOfParent: string): void => {
    const role = String(node.role?.value ?? '');
    const name = String(node.name?.value ?? '');
    // The text of a link or a heading is its name already.
    const isSilent = node.ignored || SILENT.includes(role) || (role === 'StaticText' && nameOfParent.includes(name));
    if (!isSilent) lines.push('  '.repeat(depth) + describe(node, role, name));
    for (const id of node.childIds ?? []) {
      const child = byId.get(id);
      if (child !== undefined) read(child, isSilent ? depth : depth + 1, isSilent ? nameOfParent : name);
    }
  };
  const [root] = nodes;
  if (root !== undefined) read(root, 0, '');
  return lines;
}

function describe({ value, description, properties = [] }: AxNode, role: string, name: string): string {
  const states = properties
    .filter(({ name, value }) => STATES.includes(name) && !UNSET.includes(value.value ?? ''))
    .map(({ name, value }) => `${name}=${value.value ?? ''}`);
  return [
    role === 'StaticText' ? '' : role,
    name === '' ? '' : `"${name}"`,
    value?.value === undefined ? '' : `value=${value.value}`,
    ...states,
    description?.value === undefined || description.value === '' ? '' : `description="${description.value}"`,
  ]
    .filter((part) => part !== '')
    .join(' ');
}

const service = await startService();
const browser = await startBrowser(provideProgram(CHROMIUM), service.url);
try {
  const { developerId, prefix } = await createSampleDeveloper(service.db);
  const signedOut = await browser.newPage({ width: Number(WIDTH) });
  const signedIn = await browser.newPage({ width: Number(WIDTH) });
  await signInQuietly(signedIn, service, developerId);
  for (const [{ page, open }, paths] of [
    [signedOut, PAGES],
    [signedIn, settingsPages(prefix)],
  ] as const) {
    for (const path of paths.filter((each) => each.includes(ONLY))) {
      await open(path);
      process.stdout.write(`\n== ${path}: ${await page.title()}\n${(await readPage(page)).join('\n')}\n`);
    }
  }
} finally {
  await browser.close();
  await service.stop();
}
