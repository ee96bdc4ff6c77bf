import type { Element } from '@xmldom/xmldom';
import { around, idsOf, nameOf, proseOf, readPage, tagOf, textOf, within, type ReadPage } from './page.js';

/** Attributes that name other elements of the page. */
const REFERENCES = [
  ...['for', 'form', 'list', 'headers'],
  ...['labelledby', 'describedby', 'controls', 'owns', 'details', 'errormessage'].map((name) => `aria-${name}`),
];

/** What needs a label. */
const LABELLED = ['input', 'select', 'textarea', 'meter', 'progress'];

/** Words that end like a plural. */
const NO_PLURALS =
  /^(?:is|was|has|does|this|its|as|us|ms|address|access|process|pass|success|status|class|previous|less|plus)$/;

const PREFIX = /svc_[0-9A-Za-z]{8}/g;

/** A kind of fault, as a function that describes each one of a page. */
type Check = (page: ReadPage) => readonly string[];

const CHECKS: readonly Check[] = [
  function idsAreUnique({ elements, byId }) {
    const ids = elements.flatMap((element) => element.getAttribute('id') ?? []);
    return ids.length === byId.size
      ? []
      : ids.filter((id, at) => ids.indexOf(id) !== at).map((id) => `two have the id ${id}`);
  },

  function referencesLeadSomewhere({ elements, byId }) {
    return elements
      .flatMap((element) => [
        ...REFERENCES.flatMap((name) => idsOf(element, name)),
        ...(/^#(.+)$/
          .exec(element.getAttribute('href') ?? '')
          ?.slice(1)
          .map(decodeURIComponent) ?? []),
      ])
      .filter((id) => !byId.has(id))
      .map((id) => `no element has the id ${id}`);
  },

  function controlsHaveLabels(page) {
    const labels = page.named('label');
    const fors = new Set(labels.map((label) => label.getAttribute('for')));
    return [
      ...page
        .named(...LABELLED)
        .filter((control) => control.getAttribute('type') !== 'hidden')
        .filter((control) => {
          const label = around(control, 'label');
          if (label !== undefined) return textOf(label) === '';
          return !fors.has(control.getAttribute('id')) && nameOf(control, page) === textOf(control);
        })
        .map((control) => `no label: ${tagOf(control)}`),
      ...labels
        .filter((label) => !label.hasAttribute('for') && within(label, ...LABELLED).length !== 1)
        .map((label) => `a label of nothing: ${textOf(label)}`),
      ...page
        .named('fieldset')
        .filter((set) => within(set, 'legend').length !== 1)
        .map(() => 'a fieldset without a legend'),
    ];
  },

  function wrongFieldsNameTheirFault({ elements, byId }) {
    const described = new Set(elements.flatMap((element) => idsOf(element, 'aria-describedby')));
    return [
      ...elements
        .filter((element) => element.getAttribute('aria-invalid') === 'true')
        .filter((element) => !idsOf(element, 'aria-describedby').some((id) => textOf(byId.get(id) ?? element) !== ''))
        .map((element) => `a wrong field does not say why: ${tagOf(element)}`),
      ...[...byId.keys()]
        .filter((id) => /-(?:error|hint)$/.test(id) && !described.has(id))
        .map((id) => `nothing is described by ${id}`),
    ];
  },

  function headingsAreInOrder({ elements }) {
    const levels = elements.flatMap(({ localName }) =>
      /^h[1-6]$/.test(localName ?? '') ? [Number(localName?.[1])] : [],
    );
    return levels
      .filter((level, at) => (at === 0 ? level !== 1 : level === 1 || level > (levels[at - 1] ?? 0) + 1))
      .map((level) => `a heading of level ${level} among ${levels.join(', ')}`);
  },

  function nothingIsNameless(page) {
    return [
      // The script gives a text to what has data for it.
      ...page
        .named('a', 'button', 'summary', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'caption', 'legend')
        .filter((each) => nameOf(each, page) === '' && dataOf(each).length === 0),
      ...page.named('img').filter((img) => !img.hasAttribute('alt')),
    ].map((each) => `no text: ${tagOf(each)}`);
  },

  function sameNamesDoTheSame(page) {
    const actions = new Map<string, string>();
    // Parts of pages have the names of their headings, which repeat. A link of another deployment leads nowhere.
    const elements = page
      .named('a', 'button')
      .filter((each) => each.localName === 'button' || /^[^#]+$/.test(each.getAttribute('href') ?? ''));
    return elements.flatMap((element) => {
      const name = `${element.localName} “${nameOf(element, page)}”${contextOf(element)}`;
      const action = actionOf(element);
      const other = actions.get(name);
      actions.set(name, action);
      return other === undefined || other === action ? [] : [`${name} does both ${other} and ${action}`];
    });
  },

  function namesOfKeysAreThoseOfActions(page) {
    return page.named('a', 'button').flatMap((element) => {
      const label = element.getAttribute('aria-label') ?? '';
      const row = around(element, 'tr');
      return (label.match(PREFIX) ?? [])
        .filter((prefix) => !actionOf(element).includes(prefix) || (row !== undefined && !textOf(row).includes(prefix)))
        .map((prefix) => `${label} does ${actionOf(element)}, not with ${prefix}`);
    });
  },

  function onesAreSingular(page) {
    const labels = page.elements.flatMap((element) => [
      element.getAttribute('title') ?? '',
      element.getAttribute('aria-label') ?? '',
    ]);
    return [...proseOf(page), ...labels].flatMap((line) =>
      Array.from(line.matchAll(/(?<![\w.,:/–-]|[Ss]tep )1 (?:more |active |other |new )?([a-z]+s)\b/g))
        .filter(([, word = '']) => !NO_PLURALS.test(word))
        .map(([words]) => `“${words}” in: ${line}`),
    );
  },

  function policyAllowsEverything({ elements }) {
    return elements
      .filter(
        (element) =>
          element.localName === 'style' ||
          (element.localName === 'script' && !element.hasAttribute('src')) ||
          Array.from(element.attributes).some(({ name }) => name === 'style' || /^on\w/.test(name)),
      )
      .map((element) => `the content security policy forbids ${tagOf(element)}`);
  },
];

/** In a table, the cell around a link says with it where it leads (WCAG 2.2, success criterion 2.4.4). */
function contextOf(element: Element): string {
  const cell = element.localName === 'a' ? around(element, 'td', 'th') : undefined;
  return cell === undefined ? '' : ` in ${textOf(cell)}`;
}

/** @returns what an element holds for the script */
function dataOf(element: Element): string[] {
  return Array.from(element.attributes).flatMap(({ name, value }) =>
    name.startsWith('data-') ? `${name}=${value}` : [],
  );
}

/** @returns what happens after a click: the address, or the form and what it sends */
function actionOf(element: Element): string {
  if (element.localName === 'a') return element.getAttribute('href') ?? '';
  const form = around(element, 'form');
  const fields = form === undefined ? [] : within(form, 'input', 'button');
  return [
    form?.getAttribute('action'),
    element.getAttribute('value'),
    ...dataOf(element),
    // What identifies a form that takes effect once differs each time.
    ...fields
      .filter((field) => field.getAttribute('type') === 'hidden' && field.getAttribute('name') !== 'form')
      .map((field) => `${field.getAttribute('name')}=${field.getAttribute('value')}`),
  ].join(' ');
}

/** @returns what is wrong with a page, in words */
export function faultsOf(html: string): string[] {
  const page = readPage(html);
  return CHECKS.flatMap((check) => check(page));
}
