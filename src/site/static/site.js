'use strict';

// What is nicer with a script. Every page works without it: what needs the script is hidden until the script shows it.

/** How long a button says that it has copied, in milliseconds. */
const COPIED_MS = 2000;

/** @param {HTMLButtonElement} button - copies the text of the `code` in the same figure */
function enableCopying(button) {
  const label = button.textContent;
  button.hidden = false;
  button.addEventListener('click', async () => {
    const code = button.closest('figure')?.querySelector('code');
    try {
      await navigator.clipboard.writeText(code?.textContent ?? '');
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Select and copy';
    }
    setTimeout(() => {
      button.textContent = label;
    }, COPIED_MS);
  });
}

// Browsers offer the clipboard to https and to this machine alone.
if (navigator.clipboard) document.querySelectorAll('[data-copy]').forEach(enableCopying);
