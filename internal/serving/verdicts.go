// SPDX-License-Identifier: Apache-2.0

// The cache of the API server's verdicts.

package serving

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
)

// maxVerdicts is more than the users and paths of a controller, and more than the made-up
// tokens that can be reviewed before their verdicts expire.
const maxVerdicts = 1000

// verdicts caches verdicts of the API server, and asks it once for all callers that wait
// for the same verdict.
type verdicts[T any] struct {
	remembered *cache.LRUExpireCache
	underWay   singleflight.Group
}

func newVerdicts[T any]() *verdicts[T] {
	return &verdicts[T]{remembered: cache.NewLRUExpireCache(maxVerdicts)}
}

// get returns the cached verdict of a key, or else calls ask, which returns the verdict
// and how long to cache it. Errors are not cached. If the caller's ctx ends, ask
// continues, because other callers may wait for it.
func (v *verdicts[T]) get(ctx context.Context, key string, ask func(context.Context) (T, time.Duration, error)) (T, error) {
	detached := context.WithoutCancel(ctx)
	answer := v.underWay.DoChan(key, func() (any, error) {
		if verdict, ok := v.remembered.Get(key); ok {
			return verdict, nil
		}
		verdict, ttl, err := ask(detached)
		if err == nil {
			v.remembered.Add(key, verdict, ttl)
		}
		return verdict, err
	})
	select {
	case result := <-answer:
		return result.Val.(T), result.Err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
