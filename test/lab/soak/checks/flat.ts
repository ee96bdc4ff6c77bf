import { median } from '../../../bench/measure.js';
import { at, type Check } from './check.js';

/** What a figure may grow by from the end of its warm-up to the end of the run. */
const BOUNDS: Readonly<Record<string, { readonly absolute: number; readonly part: number }>> = {
  'memory, MiB': { absolute: 8, part: 0.1 },
  descriptors: { absolute: 8, part: 0 },
  connections: { absolute: 4, part: 0 },
};

/** Samples before this are not judged: caches fill, code is compiled, pools open connections. */
const WARM_UP_MS = 120_000;

/** A slope over less time says nothing: the memory of a process rises and falls by 30 MiB within four minutes. */
const LEAST_MS = 600_000;

/** One figure of a process or a server over time. */
interface Series {
  readonly subject: string;
  readonly figure: string;
  readonly points: [time: number, value: number][];
}

/** Memory, open descriptors and connections do not grow. */
export const flatCheck: Check = {
  promise: 'Memory, open descriptors and connections stay flat after the warm-up.',
  judge(history) {
    const all = new Map<string, Series>();
    for (const event of history) {
      if (event.kind !== 'sample') continue;
      for (const [figure, value] of Object.entries(event.figures)) {
        const id = `${figure} of ${event.subject}`;
        const series = all.get(id) ?? { subject: event.subject, figure, points: [] };
        all.set(id, series);
        series.points.push([event.start, value]);
      }
    }
    const violations: string[] = [];
    let judged = 0;
    for (const [id, { figure, points }] of all) {
      const begin = points[0]?.[0] ?? 0;
      const steady = points.filter(([time]) => time >= begin + WARM_UP_MS);
      const length = (steady.at(-1)?.[0] ?? 0) - (steady[0]?.[0] ?? 0);
      const bound = BOUNDS[figure];
      if (bound === undefined || length < LEAST_MS) continue;
      judged += 1;
      const growth = slope(steady) * length;
      const most = bound.absolute + bound.part * median(steady.map(([, value]) => value));
      if (growth > most) {
        violations.push(`The ${id} grew by ${growth.toFixed(1)} in ${at(length)}, with a bound of ${most.toFixed(1)}.`);
      }
    }
    return { judged: `${judged} of ${all.size} series, those that lasted ${at(WARM_UP_MS + LEAST_MS)}`, violations };
  },
};

/** The slope of Theil and Sen, the median over all pairs of points: peaks during faults do not count. */
function slope(points: Series['points']): number {
  return median(
    points.flatMap(([time, value], index) =>
      points.slice(index + 1).map(([later, other]) => (other - value) / (later - time)),
    ),
  );
}
