import type { Observation, Observe } from '../../client/observation.js';
import { showPosition } from '../../client/client.js';
import { withAdvice } from '../../errors.js';
import { formatCount } from '../../platform/text/count.js';
import type { ProgressDisplay } from '../output/progress-display.js';

/** Reports the observations of a mirror: as lines and, for progress, as a bar. */
export function reporter(display: ProgressDisplay, baseUrl: string): Observe {
  return (observation) => {
    const { kind } = observation;
    const line = lineOf(observation, baseUrl);
    if (kind === 'progress') display.update(observation.progress);
    if (kind === 'following') display.stop();
    if (line !== undefined) display.printLine(line);
  };
}

/** @returns undefined for observations without a line */
function lineOf(observation: Observation, baseUrl: string): string | undefined {
  switch (observation.kind) {
    case 'retrying':
      return `${withAdvice(observation.failure)} Retrying in ${Math.ceil(observation.waitMs / 1000)} s.`;
    case 'loading':
      if (observation.copyOf !== undefined) return undefined;
      return `No copy is published at ${observation.copiesUrl}/. Reading the whole feed instead.`;
    case 'loaded': {
      const { copyOf, counts } = observation;
      const parts = Object.entries(counts).map(([what, count]) => `${formatCount(count)} ${what}`);
      return `Loaded ${copyOf === undefined ? 'the whole feed' : `the copy of ${copyOf}`}: ${parts.join(', ')}.`;
    }
    case 'following':
      return `Following ${baseUrl} from ${showPosition(observation.position)}.`;
    case 'position-refused':
      return `The feed no longer accepts the position ${showPosition(observation.position)}. Loading the newest copy.`;
    case 'feed-replaced':
      return `${observation.error.message} Loading the newest copy.`;
    default:
      return undefined;
  }
}
