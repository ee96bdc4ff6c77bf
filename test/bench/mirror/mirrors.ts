import { GuidePicture } from '../picture/guide-picture.js';
import type { Colour } from '../picture/draw-lines.js';

/** What is timed for each size of the catalogue. */
export const STEPS = {
  publish: 'to publish a copy',
  begin: 'from nothing to equal',
  compare: 'to compare with the copy',
} as const;
export type Step = keyof typeof STEPS;

export const STEP_NAMES = Object.keys(STEPS) as readonly Step[];

/** The figures of the picture. */
export interface MirrorResults {
  readonly machine: string;
  readonly bySize: readonly {
    readonly titles: number;
    readonly seconds: Readonly<Record<Step, number>>;
  }[];
}

const COLOURS: Readonly<Record<Step, Colour>> = { publish: 'green', begin: 'blue', compare: 'orange' };

/** The time that each step takes against the size of the catalogue. */
export const MIRRORS = new GuidePicture<MirrorResults>({
  path: 'pictures/mirrors.svg',
  guide: 'mirroring',
  figures: new URL('mirrors.json', import.meta.url),
  chartOf: ({ machine, bySize }) => ({
    title: 'Time to publish, take and compare a copy, by the size of the catalogue',
    subtitle: ['The service, its database and that of the mirror share one machine.', machine],
    unit: 'seconds',
    isLogarithmic: true,
    sizes: bySize.map(({ titles }) => titles),
    lines: STEP_NAMES.map((step) => ({
      name: STEPS[step],
      colour: COLOURS[step],
      times: bySize.map(({ seconds }) => seconds[step]),
    })),
  }),
});
