import type { Fault } from '../../fault.js';

const PAGES = 'test/site/browser.test.ts';
const STORIES = 'test/site/stories.test.ts';

const STYLES = 'src/site/static/site.css';
const SCRIPT = 'src/site/static/site.js';

/** Faults that show in a browser. */
export const BROWSER_FAULTS: readonly Fault[] = [
  {
    name: 'browser-faint-text',
    promise: 'Text stands out from a light page as WCAG 2.2 AA asks.',
    edits: [{ file: STYLES, from: '--muted: light-dark(#5a6475,', to: '--muted: light-dark(#b0b7c3,' }],
    suites: [PAGES],
  },
  {
    name: 'browser-faint-text-in-the-dark',
    promise: 'Text stands out from a dark page as WCAG 2.2 AA asks.',
    edits: [{ file: STYLES, from: '#5a6475, #a1a9b8)', to: '#5a6475, #4a5160)' }],
    suites: [PAGES],
  },
  {
    name: 'browser-invisible-focus',
    promise: 'The focus of the keyboard is visible.',
    edits: [
      {
        file: STYLES,
        from: '\n:focus-visible {\n  outline: 2px solid var(--accent);',
        to: '\n:focus-visible {\n  outline: 0;',
      },
    ],
    suites: [PAGES],
  },
  {
    name: 'browser-scrolls-sideways',
    promise: 'No page scrolls sideways on a screen of 320 pixels.',
    edits: [
      { file: STYLES, from: '.table-scroll {\n  overflow-x: auto;', to: '.table-scroll {\n  overflow-x: visible;' },
    ],
    suites: [PAGES],
  },
  {
    name: 'browser-input-without-a-label',
    promise: 'A screen reader names each input.',
    edits: [
      { file: 'src/site/layout/form-field.tsx', from: '<label for={id}>{label}</label>', to: '<span>{label}</span>' },
    ],
    suites: [PAGES],
  },
  {
    name: 'browser-breaks-the-policy',
    promise: 'No page breaks its content security policy.',
    edits: [{ file: 'src/site/layout/layout.tsx', from: '<body>', to: '<body style="margin: 0">' }],
    suites: [PAGES],
  },
  {
    name: 'browser-asks-another-origin',
    promise: 'A page loads nothing from elsewhere.',
    edits: [
      {
        file: 'src/site/layout/layout.tsx',
        from: "<script src={files.paths['site.js']} defer />",
        to: '<script src={files.paths[\'site.js\']} defer />\n        <link rel="stylesheet" href="https://fonts.example/fonts.css" />',
      },
    ],
    suites: [PAGES],
  },
  {
    name: 'browser-button-without-its-script',
    promise: 'Without scripts a page shows no button that needs one.',
    edits: [{ file: 'src/site/layout/components.tsx', from: 'data-copy hidden>', to: 'data-copy>' }],
    suites: [PAGES],
  },
  {
    name: 'browser-keeps-the-key',
    promise: 'The reference keeps a key nowhere.',
    edits: [
      {
        file: SCRIPT,
        from: "  key.addEventListener('input', () => {\n",
        to: "  key.addEventListener('input', () => {\n    localStorage.setItem('key', key.value);\n",
      },
    ],
    suites: [STORIES],
  },
  {
    name: 'browser-shows-the-key-again',
    promise: 'A key that was typed is gone on the way back to the page.',
    edits: [{ file: SCRIPT, from: "  all('[data-key]').forEach((input) => (input.value = ''));\n", to: '' }],
    suites: [STORIES],
  },
  {
    name: 'browser-shows-a-new-key-again',
    promise: 'A new key is gone on the way back to the page.',
    edits: [
      {
        file: SCRIPT,
        from: "  all('[data-secret]').forEach((part) => (part.textContent = 'This key is no longer shown.'));\n",
        to: '',
      },
    ],
    suites: [STORIES],
  },
  {
    name: 'browser-answer-as-html',
    promise: 'The reference shows an answer as text, whatever it holds.',
    edits: [{ file: SCRIPT, from: '{ textContent: text }', to: '{ innerHTML: text }' }],
    suites: [STORIES],
  },
  {
    name: 'browser-sends-twice',
    promise: 'A form is sent once, however often its button is clicked.',
    edits: [{ file: SCRIPT, from: "all('[data-once]').forEach(sendOnce);\n", to: '' }],
    suites: [STORIES],
  },
  {
    name: 'browser-finds-what-is-folded',
    promise: 'A search unfolds what it finds.',
    edits: [{ file: SCRIPT, from: "addEventListener('hashchange', unfold);\n", to: '' }],
    suites: [STORIES],
  },
];
