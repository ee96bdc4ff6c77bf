/** Writes a whole number with its thousands apart, as all pages do: `10,000`. */
export function formatNumber(value: number): string {
  return value.toLocaleString('en-US');
}
