import type { UsageCounts } from '../../../usage/usage-counts.js';

/** @returns all requests, however they ended */
export function total({ served, refused, failed }: UsageCounts): number {
  return served + refused + failed;
}

/** @returns the counts of several rows together */
export function sum(rows: readonly UsageCounts[]): UsageCounts {
  const sumOf = (name: keyof UsageCounts): number => rows.reduce((added, row) => added + row[name], 0);
  return { served: sumOf('served'), refused: sumOf('refused'), failed: sumOf('failed') };
}
