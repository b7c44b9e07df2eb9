// Package protocol has the shapes of Burrow's messages, so that templates meet the types they were written for.
package protocol

import "encoding/json"

// StatusConstant prints as a word and compares as a number.
type StatusConstant int

var words = []string{"NOTFOUND", "OK", "WARN", "ERR", "STOP", "STALL", "REWIND"}

func (status StatusConstant) String() string {
	if status < 0 || int(status) >= len(words) {
		return "UNKNOWN"
	}
	return words[status]
}

// MarshalJSON writes the word.
func (status StatusConstant) MarshalJSON() ([]byte, error) { return json.Marshal(status.String()) }

// Lag is a number that may be absent.
type Lag struct{ Value uint64 }

// MarshalJSON writes the number alone.
func (lag Lag) MarshalJSON() ([]byte, error) { return json.Marshal(lag.Value) }

// UnmarshalJSON reads the number alone.
func (lag *Lag) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &lag.Value) }

// ConsumerOffset is one commit.
type ConsumerOffset struct {
	Offset            int64 `json:"offset"`
	Order             int64 `json:"-"`
	Timestamp         int64 `json:"timestamp"`
	ObservedTimestamp int64 `json:"observedAt"`
	Lag               *Lag  `json:"lag"`
}

// PartitionStatus is the verdict on a partition.
type PartitionStatus struct {
	Topic      string          `json:"topic"`
	Partition  int32           `json:"partition"`
	Owner      string          `json:"owner"`
	ClientID   string          `json:"client_id"`
	Status     StatusConstant  `json:"status"`
	Start      *ConsumerOffset `json:"start"`
	End        *ConsumerOffset `json:"end"`
	CurrentLag uint64          `json:"current_lag"`
	Complete   float32         `json:"complete"`
}

// ConsumerGroupStatus is the verdict on a group.
type ConsumerGroupStatus struct {
	Cluster         string             `json:"cluster"`
	Group           string             `json:"group"`
	Status          StatusConstant     `json:"status"`
	Complete        float32            `json:"complete"`
	Partitions      []*PartitionStatus `json:"partitions"`
	TotalPartitions int                `json:"partition_count"`
	Maxlag          *PartitionStatus   `json:"maxlag"`
	TotalLag        uint64             `json:"totallag"`
}
