// A table of any length: only the rows in sight are there.
import { useVirtualizer } from "@tanstack/react-virtual"
import type { ComponentChildren } from "preact"
import { useRef } from "preact/hooks"

export interface Column {
  id: string
  title: string
  /** How wide, as a grid track. */
  width: string
  isNumber?: boolean
  /** Left out where there is little room. */
  isMinor?: boolean
  isFixed?: boolean
}

export interface Order {
  by: string
  isDown: boolean
}

export const orderOf = (wanted: string | null, otherwise: Order): Order =>
  wanted ? { by: wanted.replace(/^-/, ""), isDown: wanted.startsWith("-") } : otherwise
export const orderText = (order: Order) => (order.isDown ? `-${order.by}` : order.by)

const ROW = 40

const indexOf = (row: HTMLElement) => Number(row.getAttribute("aria-rowindex"))

/** The first row that can be chosen by keyboard. */
export const firstRow = () => document.querySelector<HTMLElement>('.body .row[aria-rowindex="2"] [data-row]')

export function Table({
  label,
  columns,
  count,
  keyAt,
  cells,
  order,
  sort,
  chosen,
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
  chosen?: string | null
  isTall?: boolean
  empty: string
}) {
  const scroller = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    getItemKey: keyAt,
    overscan: 12,
  })
  const move = (event: KeyboardEvent) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return
    const held = [...scroller.current!.querySelectorAll<HTMLElement>(".body .row")].sort(
      (a, b) => indexOf(a) - indexOf(b),
    )
    const at = held.findIndex((row) => row.contains(document.activeElement))
    const next = held[at + (event.key === "ArrowDown" ? 1 : -1)]?.querySelector<HTMLElement>("[data-row]")
    if (next) {
      event.preventDefault()
      next.focus()
    }
  }
  // In the document they stand by their keys, so that none has to move when the order changes: a browser follows the
  // one that has the focus, and the page would jump.
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
              const isOrder = column.id === order.by
              const isDown = isOrder ? !order.isDown : column.isNumber === true
              return (
                <div
                  key={column.id}
                  role="columnheader"
                  class={`cell ${column.isNumber ? "is-number" : ""} ${column.isMinor ? "is-minor" : ""}`}
                  style={{ flex: column.width }}
                  aria-sort={isOrder ? (order.isDown ? "descending" : "ascending") : "none"}
                >
                  {column.isFixed ? (
                    column.title
                  ) : (
                    <button type="button" onClick={() => sort({ by: column.id, isDown })}>
                      {column.title} <span aria-hidden="true">{isOrder ? (order.isDown ? "↓" : "↑") : ""}</span>
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
              class={`row ${chosen === item.key ? "is-chosen" : ""}`}
              aria-rowindex={item.index + 2}
              style={{ transform: `translateY(${item.start}px)` }}
            >
              {cells(item.index).map((cell, place) => {
                const column = columns[place]!
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
