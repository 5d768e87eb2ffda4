/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

	http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package serving

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
)

// maxVerdicts is more users and paths than there are, and more made-up tokens
// than can be reviewed before they are forgotten.
const maxVerdicts = 1000

// verdicts remembers what the API server said, and asks it once for all who wait
// for the same verdict.
type verdicts[T any] struct {
	remembered *cache.LRUExpireCache
	underWay   singleflight.Group
}

func newVerdicts[T any]() *verdicts[T] {
	return &verdicts[T]{remembered: cache.NewLRUExpireCache(maxVerdicts)}
}

// get returns the verdict about key: the one that is remembered, or else what
// ask returns, which also says for how long it is good. A failure to ask is not
// remembered. ask goes on when its caller is gone, because others may wait.
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
