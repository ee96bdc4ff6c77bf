import { errorId } from '../../parts/content/heading.js';
import { OPENABLE_PATH } from '../../parts/content/heading.js';
import type { Contract } from './contract.js';

// The ids of the sections of the reference. The id of an operation is its operationId.

export const headerId = (name: string): string => `header-${name}`;
export const responseId = (name: string): string => `response-${name}`;
export const schemaId = (name: string): string => `schema-${name}`;
export const fieldId = (schema: string, field: string): string => `${schemaId(schema)}-${field}`;
export const parameterId = (operationId: string, name: string): string => `${operationId}-${name}`;
export const securityId = (name: string): string => `security-${name}`;

/** @returns a function that finds the address of an error code, an operation or a schema that inline code names */
export function codeLinks({ components, paths }: Contract): (code: string) => string | undefined {
  const ids = new Set(Object.values(paths).flatMap((methods) => Object.values(methods).map((it) => it.operationId)));
  return (code) => {
    if (OPENABLE_PATH.test(code)) return code;
    const id = errorId(code) ?? (ids.has(code) ? code : code in components.schemas ? schemaId(code) : undefined);
    return id === undefined ? undefined : `#${id}`;
  };
}

/** `NotModified` → `Not modified`. */
export function inWords(name: string): string {
  const words = name.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
