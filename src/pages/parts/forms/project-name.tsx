import type { VNode } from 'preact';
import { MAX_PROJECT_NAME } from '../../../developers/developers.js';
import { findKeyPrefix, KEY_AS_NAME } from '../../../keys/api-key.js';
import { type Submission, Field } from './form.js';

/** The field of a project's name, for the parser of its form. */
export const PROJECT_NAME_FIELD = {
  project_name: {
    schema: { minLength: 1, maxLength: MAX_PROJECT_NAME, allOf: [{ format: 'plain-text' }, { format: 'not-a-key' }] },
    message: (name: string) =>
      findKeyPrefix(name) === undefined
        ? `Enter a name of 1 to ${MAX_PROJECT_NAME} characters, without line breaks or other control characters.`
        : KEY_AS_NAME,
  },
} as const;

interface ProjectNameProps {
  readonly submission: Submission<'project_name'>;
  readonly hint?: string;
  readonly autocomplete?: string;
}

/** The field for the name of a project. */
export function ProjectName({ submission: { values, errors }, ...attributes }: ProjectNameProps): VNode {
  const name = values.project_name;
  return (
    <Field
      name="project_name"
      label="Project name"
      // A key is not shown again.
      value={findKeyPrefix(name) === undefined ? name.slice(0, MAX_PROJECT_NAME) : ''}
      error={errors.project_name}
      required
      maxLength={MAX_PROJECT_NAME}
      {...attributes}
    />
  );
}
