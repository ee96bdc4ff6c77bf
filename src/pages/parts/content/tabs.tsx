import { Fragment, type ComponentChildren, type VNode } from 'preact';

interface TabsProps {
  /** Unique in the page. */
  readonly name: string;
  /** The subject of the choice, for screen readers. */
  readonly legend: string;
  /** Groups that remember the same kind of choice, such as `language`, show the one that was chosen last. */
  readonly remember?: string;
  readonly tabs: readonly { readonly label: string; readonly content: ComponentChildren }[];
}

/**
 * Panels that radio buttons show one at a time, without a script.
 *
 * @example <Tabs name="store" legend="Shell" tabs={[{ label: 'fish', content: <CodeBlock … /> }]} />
 */
export function Tabs({ name, legend, remember, tabs }: TabsProps): VNode {
  return (
    <fieldset class="tabs" data-remember={remember}>
      <legend class="visually-hidden">{legend}</legend>
      {tabs.map(({ label, content }, index) => (
        <Fragment key={label}>
          <input
            class="visually-hidden"
            type="radio"
            name={name}
            value={label}
            id={`${name}-${index}`}
            checked={index === 0}
            autocomplete="off"
          />
          <label for={`${name}-${index}`}>{label}</label>
          <div class="tab-panel">{content}</div>
        </Fragment>
      ))}
    </fieldset>
  );
}
