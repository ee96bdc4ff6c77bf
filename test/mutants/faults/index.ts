import type { Fault } from '../fault.js';
import { KEYS } from './keys.js';

/** Every fault, by the part of the service that it is planted in. */
export const FAULTS: readonly Fault[] = [...KEYS];
