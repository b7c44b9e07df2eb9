// A table of any length: only the visible rows are in the document.
import { useVirtualizer } from "@tanstack/react-virtual"
import type { ComponentChildren } from "preact"
import { useRef } from "preact/hooks"

export interface Column {
  id: string
  title: string
  /** Its width, as the CSS property `flex`. */
  width: string
  isNumber?: boolean
  /** Hidden on small screens. */
  isMinor?: boolean
  /** Cannot be sorted by. */
  isFixed?: boolean
}

export interface Order {
  by: string
  isDescending: boolean
}

export const parseOrder = (text: string | null, fallback: Order): Order =>
  text ? { by: text.replace(/^-/, ""), isDescending: text.startsWith("-") } : fallback
export const orderText = (order: Order) => (order.isDescending ? `-${order.by}` : order.by)

const ROW_HEIGHT = 40

const indexOf = (row: HTMLElement) => Number(row.getAttribute("aria-rowindex"))

/** The link or button in the first row. */
export const firstRow = () => document.querySelector<HTMLElement>('.body .row[aria-rowindex="2"] [data-row]')

export function Table({
  label,
  columns,
  count,
  keyAt,
  cells,
  order,
  sort,
  selected,
  isTall,
  empty,
}: {
  label: string
  columns: Column[]
  count: number
  keyAt: (row: number) => string
  cells: (row: number) => ComponentChildren[]
  order: Order
  sort: (order: Order) => void
  selected?: string | null
  isTall?: boolean
  empty: string
}) {
  const scroller = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    getItemKey: keyAt,
    overscan: 12,
  })
  const move = (event: KeyboardEvent) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return
    const visible = [...scroller.current!.querySelectorAll<HTMLElement>(".body .row")].sort(
      (a, b) => indexOf(a) - indexOf(b),
    )
    const current = visible.findIndex((row) => row.contains(document.activeElement))
    const next = visible[current + (event.key === "ArrowDown" ? 1 : -1)]?.querySelector<HTMLElement>("[data-row]")
    if (next) {
      event.preventDefault()
      next.focus()
    }
  }
  // Rows are ordered by key in the document, so that none moves when the order changes: the browser would scroll to
  // the row that has the focus.
  const shown = rows.getVirtualItems().sort((a, b) => (a.key < b.key ? -1 : 1))
  return (
    <div class={`table ${isTall ? "is-tall" : ""}`}>
      <div
        class="scroller"
        ref={scroller}
        tabIndex={0}
        role="table"
        aria-label={label}
        aria-rowcount={count + 1}
        onKeyDown={move}
      >
        <div role="rowgroup" class="head">
          <div role="row" class="row" aria-rowindex={1}>
            {columns.map((column) => {
              const isSorted = column.id === order.by
              const isDescending = isSorted ? !order.isDescending : column.isNumber === true
              return (
                <div
                  key={column.id}
                  role="columnheader"
                  class={`cell ${column.isNumber ? "is-number" : ""} ${column.isMinor ? "is-minor" : ""}`}
                  style={{ flex: column.width }}
                  aria-sort={isSorted ? (order.isDescending ? "descending" : "ascending") : "none"}
                >
                  {column.isFixed ? (
                    column.title
                  ) : (
                    <button type="button" onClick={() => sort({ by: column.id, isDescending })}>
                      {column.title} <span aria-hidden="true">{isSorted ? (order.isDescending ? "↓" : "↑") : ""}</span>
                    </button>
                  )}
                </div>
              )
            })}
          </div>
        </div>
        <div role="rowgroup" class="body" style={{ height: `${rows.getTotalSize()}px` }}>
          {shown.map((item) => (
            <div
              key={item.key}
              role="row"
              class={`row ${selected === item.key ? "is-chosen" : ""}`}
              aria-rowindex={item.index + 2}
              style={{ transform: `translateY(${item.start}px)` }}
            >
              {cells(item.index).map((cell, index) => {
                const column = columns[index]!
                return (
                  <div
                    key={column.id}
                    role="cell"
                    class={`cell ${column.isNumber ? "is-number" : ""} ${column.isMinor ? "is-minor" : ""}`}
                    style={{ flex: column.width }}
                  >
                    {cell}
                  </div>
                )
              })}
            </div>
          ))}
        </div>
        {count === 0 && <p class="empty">{empty}</p>}
      </div>
    </div>
  )
}
