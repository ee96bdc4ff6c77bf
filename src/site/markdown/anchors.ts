/** @returns the anchor that GitHub gives a heading, so that a link works in the repository and on the page */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
